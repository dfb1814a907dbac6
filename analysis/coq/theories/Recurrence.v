(* SPDX-License-Identifier: Apache-2.0 *)
(** The recurrences of theorem 1 of analysis/docs/window.md (fixed priorities, threads suspend), written once.

    They are generic in the numbers: the checker instantiates them with binary integers ([N]), the proof with [nat].
    So the formula that is evaluated is the formula that is proved. *)

From Coq Require Import List NArith Bool PeanoNat.
Import ListNotations.

Section Recurrence.
  Variable A : Type.
  Variable zero : A.
  Variables add mul sub least : A -> A -> A.
  (** [jobs x T] is ceil(x / T): how many jobs, at least T apart, arrive in an interval of length x. *)
  Variable jobs : A -> A -> A.
  Variable of_nat : nat -> A.

  (** One GPU segment: host part, device part, and the bound F on the length of its window. *)
  Record segment := Segment { host : A; device : A; length_bound : A }.

  (** A set of [count] real-time tasks with the vector R. Task i is on core [core i]; a larger number is a higher
      priority. [eps i] is the epsilon of the GPU of task i. *)
  Record set := Set_ {
    count : nat;
    core : nat -> N;
    gpu : nat -> N;
    prio : nat -> N;
    gprio : nat -> N;
    segs : nat -> list segment;
    T : nat -> A;
    D : nat -> A;
    J : nat -> A;
    B : nat -> A;
    C : nat -> A;
    eps : nat -> A;
    R : nat -> A }.

  Variable p : set.

  Definition sum {X : Type} (l : list X) (f : X -> A) : A := fold_right (fun x a => add (f x) a) zero l.

  Definition tasks := seq 0 (count p).
  Definition eta i := length (segs p i).
  Definition uses i := negb (Nat.eqb (eta i) 0).
  Definition Gm i := sum (segs p i) host.
  Definition Ge i := sum (segs p i) device.
  Definition twice_eps i := add (eps p i) (eps p i).
  Definition updates i := mul (of_nat (eta i)) (twice_eps i).
  Definition cpu_work i := add (C p i) (Gm i).
  Definition hold i := add (add (Gm i) (Ge i)) (updates i).
  Definition whole i := add (C p i) (hold i).

  (** h is above i on the core of both. *)
  Definition above i h := N.eqb (core p h) (core p i) && N.ltb (prio p i) (prio p h).
  Definition hpp i := filter (above i) tasks.
  Definition same_gpu i h := uses i && uses h && N.eqb (gpu p h) (gpu p i).
  (** h is on another core and outranks i on the GPU of both: the X(i) of suspend mode. *)
  Definition remote i h := negb (N.eqb (core p h) (core p i)) && same_gpu i h && N.ltb (gprio p i) (gprio p h).
  Definition rem i := filter (remote i) tasks.

  (** (a), (b), (c): what task h above i on its core costs in an interval of length L. *)
  Definition local i h L :=
    if uses h then
      if same_gpu i h
      then mul (jobs (add L (sub (add (R p h) (twice_eps h)) (whole h))) (T p h)) (whole h)
      else mul (jobs (add L (sub (R p h) (cpu_work h))) (T p h)) (add (cpu_work h) (updates h))
    else mul (jobs (add L (J p h)) (T p h)) (C p h).

  (** Y: CPU time per job by which c can stop a holder of GPU g on the core of c. *)
  Definition stop_cost g c :=
    if uses c && negb (N.eqb (gpu p c) g) then add (cpu_work c) (updates c) else C p c.
  Definition stop_jitter g c := if uses c then sub (R p c) (stop_cost g c) else J p c.

  (** k_hc: jobs of c that can stop the windows of one job of h. *)
  Definition stoppers h c :=
    least (sum (segs p h) (fun s => jobs (add (length_bound s) (stop_jitter (gpu p h) c)) (T p c)))
          (jobs (add (R p h) (sub (R p c) (stop_cost (gpu p h) c))) (T p c)).
  Definition stop_time h c := mul (stoppers h c) (stop_cost (gpu p h) c).

  (** Jobs of h whose windows matter in an interval of length L. *)
  Definition windows h L := jobs (add L (sub (add (R p h) (twice_eps h)) (hold h))) (T p h).

  (** The bound on the length of window s of task h. *)
  Definition window_rhs h (s : segment) L :=
    add (add (add (host s) (device s)) (twice_eps h))
        (add (sum (hpp h) (fun c => local h c L))
             (sum (rem h) (fun x => mul (windows x L) (add (hold x) (sum (hpp x) (stop_time x)))))).

  (** (e): all stops by c of the windows of X(i). *)
  Definition stops_by i c w :=
    least (sum (filter (fun h => above h c) (rem i)) (fun h => mul (windows h w) (stop_time h c)))
          (mul (jobs (add w (sub (R p c) (stop_cost (gpu p i) c))) (T p c)) (stop_cost (gpu p i) c)).

  Definition own i :=
    add (add (C p i) (add (Gm i) (Ge i))) (add (updates i) (B p i)).

  (** The right-hand side for task i, w = R_i - Jr_i. *)
  Definition rhs i :=
    let w := sub (R p i) (J p i) in
    add (add (J p i) (own i))
        (add (sum (hpp i) (fun h => local i h w))
             (add (sum (rem i) (fun h => mul (windows h w) (hold h)))
                  (sum tasks (fun c => stops_by i c w)))).
End Recurrence.

Arguments Segment {A}.
Arguments host {A}.
Arguments device {A}.
Arguments length_bound {A}.
Arguments Set_ {A}.
Arguments count {A}.
Arguments core {A}.
Arguments gpu {A}.
Arguments prio {A}.
Arguments gprio {A}.
Arguments segs {A}.
Arguments T {A}.
Arguments D {A}.
Arguments J {A}.
Arguments B {A}.
Arguments C {A}.
Arguments eps {A}.
Arguments R {A}.
