(* SPDX-License-Identifier: Apache-2.0 *)
(** The checker of certificates, in binary integers. It searches for nothing: the certificate contains R and the
    lengths F of the windows, and every comparison is evaluated once. *)

From Coq Require Import List NArith Bool.
From Gpuseg Require Import Recurrence.
Import ListNotations.

(** What a certificate says, in the order of its JSON form. All times in nanoseconds. *)
Record segment_line := SegmentLine { s_host : N; s_device : N; s_total : N; s_window : N }.
Record gpu_line := GpuLine { g_eps : N; g_stall : N }.
Record task_line := TaskLine {
  t_core : N; t_gpu : N; t_process : N; t_prio : N; t_gprio : N;
  t_period : N; t_deadline : N; t_jitter : N; t_blocking : N; t_cpu : N; t_eps : N; t_response : N;
  t_segs : list segment_line }.
Record certificate := Certificate { c_gpus : list gpu_line; c_tasks : list task_line }.

(** Why a certificate is rejected. Numbers count tasks, segments and GPUs from 0. *)
Inductive failure :=
  | PeriodIsZero (task : nat)
  | DeadlineAbovePeriod (task : nat)
  | ResponseAboveDeadline (task : nat)
  | ResponseBelowRightHandSide (task : nat)
  | WindowBelowRightHandSide (task segment : nat)
  | TotalIsNotHostPlusDevice (task segment : nat)
  | NoHostPart (task segment : nat)
  | UnknownGpu (task : nat)
  | StalledGpu (gpu : nat)
  | BlockingOfCpuOnlyTask (task : nat)
  | EqualCpuPriorities (task other : nat)
  | EqualGpuPriorities (task other : nat)
  | GpuOrderIsNotCpuOrder (task other : nat)
  | SharedProcess (task other : nat).

Definition ceil_div (x y : N) : N := ((x + y - 1) / y)%N.

Definition no_task := TaskLine 0 0 0 0 0 0 0 0 0 0 0 0 [].
Definition no_gpu := GpuLine 0 0.

Section Check.
  Variable c : certificate.

  Definition line i := nth i (c_tasks c) no_task.
  Definition segment_of s := Segment (s_host s) (s_device s) (s_window s).
  Definition eps_of t :=
    match t_segs t with
    | [] => t_eps t
    | _ => g_eps (nth (N.to_nat (t_gpu t)) (c_gpus c) no_gpu)
    end.

  (** The certificate as a set of the recurrences. *)
  Definition set_of : set N := {|
    count := length (c_tasks c);
    core := fun i => t_core (line i);
    gpu := fun i => t_gpu (line i);
    prio := fun i => t_prio (line i);
    gprio := fun i => t_gprio (line i);
    segs := fun i => map segment_of (t_segs (line i));
    T := fun i => t_period (line i);
    D := fun i => t_deadline (line i);
    J := fun i => t_jitter (line i);
    B := fun i => t_blocking (line i);
    C := fun i => t_cpu (line i);
    eps := fun i => eps_of (line i);
    R := fun i => t_response (line i) |}.

  Definition right_hand_side i := rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat set_of i.
  Definition window_right_hand_side i s :=
    window_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat set_of i s (length_bound s).

  Definition unless (holds : bool) (f : failure) : list failure := if holds then [] else [f].

  (** The right-hand sides of tasks and of windows. *)
  Variable right : nat -> N.
  Variable window_right : nat -> segment N -> N.

  Definition segment_failures i js :=
    let '(j, s) := js in
    unless (N.eqb (s_total s) (s_host s + s_device s)) (TotalIsNotHostPlusDevice i j)
    (* The call of end needs the core: it is the last instant of the host part. *)
    ++ unless (N.ltb 0 (s_host s)) (NoHostPart i j)
    ++ unless (N.leb (t_response (line i)) (s_window s)
               || N.leb (window_right i (segment_of s)) (s_window s)) (WindowBelowRightHandSide i j).

  Definition numbered {X : Type} (l : list X) := combine (seq 0 (length l)) l.

  Definition task_failures i :=
    let t := line i in
    unless (N.ltb 0 (t_period t)) (PeriodIsZero i)
    ++ unless (N.leb (t_deadline t) (t_period t)) (DeadlineAbovePeriod i)
    ++ unless (N.leb (t_response t) (t_deadline t)) (ResponseAboveDeadline i)
    ++ unless (negb (uses N set_of i) || Nat.ltb (N.to_nat (t_gpu t)) (length (c_gpus c))) (UnknownGpu i)
    ++ unless (uses N set_of i || N.eqb (t_blocking t) 0) (BlockingOfCpuOnlyTask i)
    ++ unless (N.leb (right i) (t_response t)) (ResponseBelowRightHandSide i)
    ++ flat_map (segment_failures i) (numbered (t_segs t)).

  Definition pair_failures i h :=
    let t := line i in
    let u := line h in
    if Nat.eqb i h then [] else
    let same := same_gpu N set_of i h in
    let local := N.eqb (t_core u) (t_core t) in
    unless (negb local || negb (N.eqb (t_prio t) (t_prio u))) (EqualCpuPriorities i h)
    ++ unless (negb same || negb (N.eqb (t_gprio t) (t_gprio u))) (EqualGpuPriorities i h)
    ++ unless (negb (local && same) || eqb (N.ltb (t_prio t) (t_prio u)) (N.ltb (t_gprio t) (t_gprio u)))
         (GpuOrderIsNotCpuOrder i h)
    ++ unless (negb (uses N set_of i && uses N set_of h) || negb (N.eqb (t_process t) (t_process u)))
         (SharedProcess i h).

  Definition gpu_failures gs := let '(g, l) := gs in unless (N.eqb (g_stall l) 0) (StalledGpu g).

  Definition all := seq 0 (length (c_tasks c)).

  Definition failures_with : list failure :=
    flat_map gpu_failures (numbered (c_gpus c))
    ++ flat_map task_failures all
    ++ flat_map (fun i => flat_map (pair_failures i) all) all.
End Check.

Definition failures c := failures_with c (right_hand_side c) (window_right_hand_side c).
Definition check c : bool := match failures c with [] => true | _ => false end.
