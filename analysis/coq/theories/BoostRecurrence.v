(* SPDX-License-Identifier: Apache-2.0 *)
(** The recurrences of theorem 11 of analysis/docs/boost.md (fixed priorities, boost from begin to end), for strict
    priorities and windows without overlap, generic in the numbers as those of Recurrence.v. *)

From Coq Require Import List NArith Bool PeanoNat.
From Gpuseg Require Import Recurrence.
Import ListNotations.

Section Boost.
  Variable A : Type.
  Variable zero : A.
  Variables add mul sub least : A -> A -> A.
  Variable jobs : A -> A -> A.
  Variable of_nat : nat -> A.
  Variable is_zero : A -> bool.
  Variable p : set A.

  Notation sum := (sum A zero add).
  Notation Gm := (Gm A zero add p).
  Notation Ge := (Ge A zero add p).
  Notation updates := (updates A add mul of_nat p).
  Notation hold := (hold A zero add mul of_nat p).
  Notation whole := (whole A zero add mul of_nat p).
  Notation cpu_work := (cpu_work A zero add p).
  Notation uses := (uses A p).
  Notation same_gpu := (same_gpu A p).
  Notation above := (above A p).
  Notation hpp := (hpp A p).
  Notation rem := (rem A p).
  Notation tasks := (tasks A p).

  (** n(L, r - v, h) *)
  Definition number L r v h := jobs (add L (sub r v)) (T p h).
  (** The response time, and the update after the last window: R + 2 eps. *)
  Definition with_update h := add (R p h) (twice_eps A add p h).
  (** q + U: device part and updates. *)
  Definition device_updates h := add (Ge h) (updates h).
  (** The sum of n over the windows of i, their openings left out. *)
  Definition number_in_windows i r v h := sum (segs p i) (fun g => number (length_bound g) r v h).
  (** N *)
  Definition number_of i w r v h := least (number w r v h) (number_in_windows i r v h).

  (** c is in P(y, i): boosted work of c can stop a holder y. *)
  Definition stops y c := above y c && uses c && negb (N.eqb (gpu p c) (gpu p y)).
  (** k_yc, times Y_c. *)
  Definition boosted_stop_time y c :=
    mul (least (number_in_windows y (R p c) (Gm c) c) (number (R p y) (R p c) (Gm c) c)) (Gm c).

  (** (a'), (b') *)
  Definition local_in_window i h L :=
    if uses h then
      if same_gpu i h
      then least (mul (number L (with_update h) (hold h) h) (hold h))
                 (add (mul (number L (R p h) (Gm h) h) (Gm h))
                      (mul (number L (with_update h) (device_updates h) h) (device_updates h)))
      else mul (number L (R p h) (Gm h) h) (Gm h)
    else zero.

  (** (d), (e) for counts [m] of windows and [once] of stops. *)
  Definition remote_terms i (m once : nat -> A) :=
    add (sum (rem i) (fun y => mul (m y) (hold y)))
        (sum tasks (fun c => least (sum (filter (fun y => stops y c) (rem i)) (fun y => mul (m y) (boosted_stop_time y
          c)))
                                   (mul (once c) (Gm c)))).

  (** The bound on the length of window g of task i without its opening. *)
  Definition boosted_window_rhs i (g : segment A) L :=
    add (add (host g) (device g))
        (add (sum (hpp i) (fun h => local_in_window i h L))
             (remote_terms i (fun y => number L (with_update y) (hold y) y) (fun c => number L (R p c) (Gm c) c))).

  (** (a), (b), (c) *)
  Definition boosted_local i h w :=
    if uses h then
      if same_gpu i h
      then least (mul (number w (with_update h) (whole h) h) (whole h))
                 (add (mul (number w (R p h) (cpu_work h) h) (cpu_work h))
                      (mul (number_of i w (with_update h) (device_updates h) h) (device_updates h)))
      else mul (number w (R p h) (cpu_work h) h) (cpu_work h)
    else mul (jobs (add w (J p h)) (T p h)) (C p h).

  (** (f): the z largest host parts of l, each n times. The least of z x + n (what the host parts exceed x by), over x
      from 0 and the host parts, is their sum: it is attained at the smallest of the z. *)
  Definition largest z n (l : nat) :=
    let value x := add (mul (of_nat z) x) (mul n (sum (segs p l) (fun g => sub (host g) x))) in
    fold_right (fun g v => least (value (host g)) v) (value zero) (segs p l).
  Definition lower i := filter (fun l => above l i) tasks.
  Definition blocking_by i l w :=
    let n := jobs (add w (R p l)) (T p l) in
    if is_zero (B p i) then largest (S (eta A p i)) n l else mul n (Gm l).

  (** The right-hand side for task i, w = R_i - Jr_i. *)
  Definition boosted_rhs i :=
    let w := sub (R p i) (J p i) in
    add (add (J p i) (own A zero add mul of_nat p i))
        (add (sum (hpp i) (fun h => boosted_local i h w))
             (add (remote_terms i (fun y => number_of i w (with_update y) (hold y) y)
                                  (fun c => number_of i w (R p c) (Gm c) c))
                  (sum (lower i) (fun l => blocking_by i l w)))).
End Boost.
