(* SPDX-License-Identifier: Apache-2.0 *)
(** The model of theorems 1, 7 and 14 of analysis/docs/window.md, and of theorem 11 of boost.md: what a schedule is, and
    which schedules obey M1 to M7, K, A and M8' with threads that suspend. A schedule is a record of functions of time;
    nothing says how it comes about. Of the contexts that are enabled it has only the instants at which the desired set
    changes; Contexts.v derives that from the sets themselves. *)

From Coq Require Import List NArith Bool Arith.
From Gpuseg Require Import Recurrence Counting.
Import ListNotations.

(** Where a job is at an instant. [Win j]: its GPU segment j is open, from begin to end. [Idle]: not released,
    complete, or an earlier job of the task is incomplete. *)
Inductive phase_of_job := Idle | Cpu | Blocked | Win (j : nat).

(** Jobs are (task, number), windows are (task, number of the job, GPU segment). *)
Record schedule := Schedule {
  arrival : nat -> nat -> nat;
  release : nat -> nat -> nat;
  (** complete i k t: job k of task i has done all its work before instant t. *)
  complete : nat -> nat -> nat -> bool;
  phase : nat -> nat -> nat -> phase_of_job;
  (** The window of a segment is open at t if opens <= t < closes. *)
  opens : nat -> nat -> nat -> nat;
  closes : nat -> nat -> nat -> nat;
  (** An operation of the host (device) part is ready: the precedence between operations is arbitrary. *)
  host_ready : nat -> nat -> nat -> bool;
  device_ready : nat -> nat -> nat -> bool;
  (** Who runs on a core, who holds a GPU. *)
  exec : N -> nat -> option (nat * nat);
  holder : N -> nat -> option (nat * nat * nat);
  (** Whether the desired set of contexts of a GPU changes at t: it is not that of the instant before. *)
  changes : N -> nat -> bool;
  (** The update in progress on a GPU at t, named by the instant of the change of the desired set that it serves. 0 if
      it serves none: the first one. *)
  update : N -> nat -> option nat }.

Section Model.
  Variable p : set nat.
  Variable s : schedule.

  Definition is_task i := i < count p.
  Definition segments i := length (segs p i).
  Definition no_segment : segment nat := Segment 0 0 0.
  Definition segment_at i j := nth j (segs p i) no_segment.

  Definition pending i k t := release s i k <= t /\ complete s i k t = false.
  Definition working i k t := pending i k t /\ forall m, m < k -> complete s i m t = true.

  Definition in_cpu i k t := match phase s i k t with Cpu => true | _ => false end.
  Definition in_blocked i k t := match phase s i k t with Blocked => true | _ => false end.
  Definition in_window i k j t := match phase s i k t with Win j' => Nat.eqb j' j | _ => false end.

  Definition runs i k t :=
    match exec s (core p i) t with Some (h, m) => Nat.eqb h i && Nat.eqb m k | None => false end.
  Definition holds i k j t :=
    match holder s (gpu p i) t with
    | Some (h, m, j') => Nat.eqb h i && Nat.eqb m k && Nat.eqb j' j
    | None => false
    end.
  Definition quiet g t := match update s g t with None => true | Some _ => false end.
  Definition update_is g c t := match update s g t with Some c' => Nat.eqb c' c | None => false end.

  (** Units of work that a job is sure to get. *)
  Definition cpu_unit i k t := runs i k t && in_cpu i k t.
  Definition host_unit i k j t := runs i k t && in_window i k j t.
  Definition device_unit i k j t := holds i k j t && quiet (gpu p i) t && device_ready s i k t.

  Definition before g c := match c with 0 => None | S b => holder s g b end.
  Definition changed g c := holder s g c <> before g c.

  (** The last change of the desired set at or before t; 0 if it is still the first one. *)
  Fixpoint last_change g t : nat :=
    match t with
    | 0 => 0
    | S b => if changes s g t then t else last_change g b
    end.

  Definition wants_core i k t :=
    phase s i k t = Cpu \/ exists j, phase s i k t = Win j /\ host_ready s i k t = true.

  (** What is asked of tasks and threads, and who holds a GPU. *)
  Record tasks_obey : Prop := {
    (** Sporadic tasks with release jitter; jobs of a task in order; one thread each. *)
    sporadic : forall i k, is_task i -> arrival s i k + T p i <= arrival s i (S k);
    released : forall i k, is_task i -> arrival s i k <= release s i k <= arrival s i k + J p i;
    complete_stays : forall i k t, is_task i -> complete s i k t = true -> complete s i k (S t) = true;
    phase_working : forall i k t, is_task i -> (phase s i k t <> Idle <-> working i k t);
    phase_window : forall i k j t, is_task i ->
      (phase s i k t = Win j <-> j < segments i /\ opens s i k j <= t < closes s i k j);

    (** Demands: a job in a phase has not yet had all the work of that phase. The call of end needs the core, so it is
        the last unit of the host part. *)
    cpu_left : forall i k t, is_task i -> phase s i k t = Cpu -> cnt (cpu_unit i k) 0 t < C p i;
    blocking_left : forall i k t, is_task i -> phase s i k t = Blocked -> cnt (in_blocked i k) 0 t < B p i;
    host_left : forall i k j t, is_task i -> phase s i k t = Win j -> host_ready s i k t = true ->
      cnt (host_unit i k j) 0 t < host (segment_at i j);
    window_left : forall i k j t, is_task i -> phase s i k t = Win j ->
      host_ready s i k t = true \/ device_ready s i k t = true;

    (** Cores are partitioned; a core runs only who wants it. M5: a thread with only its device part left does not. *)
    exec_wants : forall c i k t, exec s c t = Some (i, k) -> is_task i /\ core p i = c /\ wants_core i k t;

    (** M1: the holder is the open window of highest GPU priority. *)
    holder_open : forall g t i k j, holder s g t = Some (i, k, j) ->
      is_task i /\ gpu p i = g /\ phase s i k t = Win j;
    holder_highest : forall i k j t, is_task i -> phase s i k t = Win j ->
      exists h m j', holder s (gpu p i) t = Some (h, m, j') /\ (h = i \/ (gprio p i <= gprio p h)%N) }.

  (** And of GPUs. *)
  Record gpus_obey : Prop := {
    tasks_part :> tasks_obey;

    (** M3: the device part of the holder is served while no update is in progress, see [device_unit]. *)
    device_left : forall i k j t, is_task i -> phase s i k t = Win j -> device_ready s i k t = true ->
      cnt (device_unit i k j) 0 t < device (segment_at i j);

    (** M2, K and A: while a window is open the desired set is that of the holder, so it changes with the holder only.
        While none is open it may change at any instant. *)
    desired_changes : forall g c, changes s g c = true -> changed g c \/ (before g c = None /\ holder s g c = None);

    (** M2: an update serves a change of the desired set and takes at most eps; it begins at once or when the one in
        progress ends (the latency of the daemon is part of it). Updates of a GPU are serial, and changes coalesce: an
        update that goes on after a later change was in progress before that change. *)
    update_cause : forall g t c, update s g t = Some c -> c <= t /\ (c = 0 \/ changes s g c = true);
    update_soon : forall i g t c, is_task i -> segments i <> 0 -> gpu p i = g -> update s g t = Some c ->
      t < c + 2 * eps p i;
    update_length : forall i g c t, is_task i -> segments i <> 0 -> gpu p i = g ->
      cnt (update_is g c) 0 t <= eps p i;
    update_serial : forall g t c c', update s g t = Some c -> c < c' <= t -> changes s g c' = true ->
      update s g (pred c') = Some c }.

  (** And of cores, without boost. *)
  Record cores_obey : Prop := {
    (** Preemptive, fixed priority (ties in any order), and no core is idle or serves anybody else while a real-time
        thread wants it (M7). *)
    core_served : forall i k t, is_task i -> wants_core i k t ->
      exists h m, exec s (core p i) t = Some (h, m) /\ (h = i \/ (prio p i <= prio p h)%N);
    (** M4: a thread that calls begin has its core then, so no task without windows that is above it is pending from
        before. Begin may or may not wait for its grant: the host part is ready when the schedule says so. *)
    begin_runs : forall i k j c m, is_task i -> is_task c -> j < segments i -> opens s i k j < closes s i k j ->
      above nat p i c = true -> segments c = 0 -> release s c m < opens s i k j ->
      complete s c m (opens s i k j) = true }.

  Record obeys : Prop := { gpus_part :> gpus_obey; cores_part :> cores_obey }.

  (** And of cores, with a boost from begin to end (M8'). *)
  Definition in_some_window i k t := exists j, phase s i k t = Win j.

  Record boost_cores_obey : Prop := {
    (** A thread in a window is above all threads that are in none; apart from that, priorities count. *)
    boost_served : forall i k t, is_task i -> wants_core i k t ->
      exists h m, exec s (core p i) t = Some (h, m) /\
        (h = i \/ (in_some_window h m t /\ ~ in_some_window i k t) \/
         ((prio p i <= prio p h)%N /\ (in_some_window i k t -> in_some_window h m t)));
    (** A thread that calls begin has its core without boost: at the begin, or just before, no thread above it wants the
        core. *)
    boost_begin : forall i k j, is_task i -> j < segments i -> opens s i k j < closes s i k j ->
      exists b, b <= opens s i k j <= S b /\
        forall c m, is_task c -> above nat p i c = true -> ~ wants_core c m b }.

  Record boost_obeys : Prop := {
    boost_gpus :> gpus_obey;
    boost_cores :> boost_cores_obey;
    (** M2: from a change until the end of the update for it, an update for it or for an earlier change is in
        progress. *)
    update_at_once : forall g t c u, update s g t = Some c -> c <= u <= t ->
      exists c', update s g u = Some c' /\ c' <= c }.
End Model.
