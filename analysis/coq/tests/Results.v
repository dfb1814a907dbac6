(* SPDX-License-Identifier: Apache-2.0 *)
(** Each test is a name and a Boolean; tests/run counts them. *)

From Coq Require Import List NArith Bool Arith String.
From Gpuseg Require Import Recurrence Checker.
From GpusegTests Require Import Certificates.
Import ListNotations.
Open Scope string_scope.

Definition is_response (f : failure) i := match f with ResponseBelowRightHandSide j => Nat.eqb i j | _ => false end.
Definition is_window (f : failure) i j :=
  match f with WindowBelowRightHandSide h g => Nat.eqb i h && Nat.eqb j g | _ => false end.

(** A certificate with task i (or one of its segments) changed. *)
Definition with_task (c : certificate) i (change : task_line -> task_line) :=
  Certificate (c_gpus c) (map (fun '(j, t) => if Nat.eqb i j then change t else t) (numbered (c_tasks c))).
Definition with_response f t :=
  TaskLine (t_core t) (t_gpu t) (t_process t) (t_prio t) (t_gprio t) (t_period t) (t_deadline t) (t_jitter t)
    (t_blocking t) (t_cpu t) (t_eps t) (f (t_response t)) (t_segs t).
Definition with_prio f g t :=
  TaskLine (t_core t) (t_gpu t) (t_process t) (f (t_prio t)) (g (t_gprio t)) (t_period t) (t_deadline t) (t_jitter t)
    (t_blocking t) (t_cpu t) (t_eps t) (t_response t) (t_segs t).
Definition with_times f t :=
  let '(period, deadline, jitter, blocking) := f (t_period t, t_deadline t, t_jitter t, t_blocking t) in
  TaskLine (t_core t) (t_gpu t) (t_process t) (t_prio t) (t_gprio t) period deadline jitter blocking (t_cpu t)
    (t_eps t) (t_response t) (t_segs t).
Definition with_place core gpu process t :=
  TaskLine (core (t_core t)) (gpu (t_gpu t)) (process (t_process t)) (t_prio t) (t_gprio t) (t_period t)
    (t_deadline t) (t_jitter t) (t_blocking t) (t_cpu t) (t_eps t) (t_response t) (t_segs t).
Definition with_segment j (change : segment_line -> segment_line) t :=
  TaskLine (t_core t) (t_gpu t) (t_process t) (t_prio t) (t_gprio t) (t_period t) (t_deadline t) (t_jitter t)
    (t_blocking t) (t_cpu t) (t_eps t) (t_response t)
    (map (fun '(k, s) => if Nat.eqb j k then change s else s) (numbered (t_segs t))).
Definition lower_window s := SegmentLine (s_host s) (s_device s) (s_total s) (s_window s - 1).
Definition longer_total s := SegmentLine (s_host s) (s_device s) (s_total s + 1) (s_window s).
Definition no_host s := SegmentLine 0 (s_device s) (s_device s) (s_window s).

Definition says (p : failure -> bool) c := existsb p (failures c).

(** Each R is a least fixed point: one nanosecond less is below the right-hand side of that task. [refused] says what a
    checker finds. *)
Definition rejects_lower_responses (refused : certificate -> list failure) c :=
  forallb (fun i => existsb (fun f => is_response f i) (refused (with_task c i (with_response N.pred))))
    (seq 0 (List.length (c_tasks c))).
Definition rejects_lower_windows (refused : certificate -> list failure) c :=
  forallb (fun '(i, t) => forallb (fun '(j, _) =>
      existsb (fun f => is_window f i j) (refused (with_task c i (with_segment j lower_window)))) (numbered (t_segs t)))
    (numbered (c_tasks c)).
Definition exact prefix (accepts : certificate -> bool) refused (sets : list (string * certificate))
  : list (string * bool) :=
  map (fun '(n, c) => (prefix ++ "accepts " ++ n, accepts c)) sets
  ++ map (fun '(n, c) => (prefix ++ "rejects each R of " ++ n ++ " lowered by 1",
    rejects_lower_responses refused c)) sets
  ++ map (fun '(n, c) => (prefix ++ "rejects each F of " ++ n ++ " lowered by 1",
    rejects_lower_windows refused c)) sets.

Definition named := [("adversary", adversary); ("autoware", autoware); ("disb_a", disb_a); ("disb_c", disb_c);
  ("disb_d", disb_d); ("disb_e", disb_e); ("gcaps_xavier", gcaps_xavier); ("manipulation", manipulation);
  ("random_a", random_a); ("random_b", random_b)].

(** Two tasks with windows on one core and one GPU; on a second core one more. All pass. *)
Definition line core process prio gprio segments :=
  TaskLine core 0 process prio gprio 1000 1000 0 0 10 1 900 segments.
Definition window := SegmentLine 5 20 25 900.
Definition small := Certificate [GpuLine 1 0]
  [line 1 0 30 30 [window]; line 1 1 20 20 [window]; line 2 2 10 10 [window]; line 2 3 9 9 []].
Definition id_n (n : N) := n.
Definition set_n (n : N) (_ : N) := n.

Definition hypotheses : list (string * bool) := [
  ("accepts the small set", check small);
  ("refuses a period of 0", says (fun f => match f with PeriodIsZero 0 => true | _ => false end)
    (with_task small 0 (with_times (fun '(t, d, j, b) => (0%N, d, j, b)))));
  ("refuses D above T", says (fun f => match f with DeadlineAbovePeriod 0 => true | _ => false end)
    (with_task small 0 (with_times (fun '(t, d, j, b) => (t, 1001%N, j, b)))));
  ("refuses R above D", says (fun f => match f with ResponseAboveDeadline 2 => true | _ => false end)
    (with_task small 2 (with_response (set_n 1001))));
  ("refuses blocking of a CPU-only task", says (fun f => match f with BlockingOfCpuOnlyTask 3 => true | _ => false end)
    (with_task small 3 (with_times (fun '(t, d, j, b) => (t, d, j, 1%N)))));
  ("refuses equal CPU priorities on a core",
    says (fun f => match f with EqualCpuPriorities 2 3 => true | _ => false end)
      (with_task small 3 (with_prio (set_n 10) id_n)));
  ("accepts equal CPU priorities on different cores", check (with_task small 2 (with_prio (set_n 20) id_n)));
  ("refuses equal GPU priorities", says (fun f => match f with EqualGpuPriorities 1 2 => true | _ => false end)
    (with_task small 2 (with_prio id_n (set_n 20))));
  ("refuses a GPU order that is not the order on the core",
    says (fun f => match f with GpuOrderIsNotCpuOrder 0 1 => true | _ => false end)
      (with_task small 0 (with_prio id_n (set_n 15))));
  ("refuses two tasks of one process", says (fun f => match f with SharedProcess 0 2 => true | _ => false end)
    (with_task small 2 (with_place id_n id_n (set_n 0))));
  ("refuses an unknown GPU", says (fun f => match f with UnknownGpu 2 => true | _ => false end)
    (with_task small 2 (with_place id_n (set_n 1) id_n)));
  ("refuses total above host + device",
    says (fun f => match f with TotalIsNotHostPlusDevice 1 0 => true | _ => false end)
      (with_task small 1 (with_segment 0 longer_total)));
  ("refuses a window without host part", says (fun f => match f with NoHostPart 1 0 => true | _ => false end)
    (with_task small 1 (with_segment 0 no_host)));
  ("refuses a GPU that others stop", says (fun f => match f with StalledGpu 0 => true | _ => false end)
    (Certificate [GpuLine 1 1] (c_tasks small)))].

Definition results : list (string * bool) :=
  exact "" check failures named ++ hypotheses.

Set Printing Width 200.
Set Printing Depth 10000.
Eval vm_compute in results.
