(* SPDX-License-Identifier: Apache-2.0 *)
(** The model is not empty: a schedule of two tasks on two cores that share a GPU obeys it, with a daemon that keeps
    contexts of idle tasks enabled and anticipates begins. The low task is expected, begins first and works on the
    device; the high task begins and takes the GPU from it; the low task gets it back. At the end one more begin is
    expected that does not come. Each change of the desired set is followed by an update of one instant. Later jobs have
    nothing to do. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Contexts Window Checker Sound.
Import ListNotations.

(** Task 0 is the high one. The bounds are those of the recurrences. *)
Definition witness_certificate := Certificate [GpuLine 1 0]
  [TaskLine 1 0 0 30 30 60 60 0 0 1 1 8 [SegmentLine 1 2 3 6];
   TaskLine 2 0 1 20 20 60 60 0 0 1 1 14 [SegmentLine 1 3 4 12]].

Lemma witness_accepted : check witness_certificate = true.
Proof. vm_compute. reflexivity. Qed.

(**  t        0    1     2     3     4     5     6     7     8     9     10    11    12    ...
     task 1        cpu   host  dev   -     -     -     -     dev   dev
     task 0                    cpu   host  dev   dev
     desired  all  On 1  On 1  On 1  On 0  On 0  On 0  On 1  On 1  On 1  all   On 0  all   all
     update        1                 4                 7                 10    11    12        *)
Definition w_phase i k t :=
  match k, i with
  | 0, 0 => if t =? 3 then Cpu else if (4 <=? t) && (t <? 7) then Win 0 else Idle
  | 0, 1 => if t =? 1 then Cpu else if (2 <=? t) && (t <? 10) then Win 0 else Idle
  | _, _ => Idle
  end.
Definition w_holder (g : N) t :=
  if N.eqb g 0 then
    if (4 <=? t) && (t <? 7) then Some (0, 0, 0)
    else if (2 <=? t) && (t <? 10) then Some (1, 0, 0) else None
  else None.
Definition w_exec (c : N) t :=
  if N.eqb c 1 && ((t =? 3) || (t =? 4)) then Some (0, 0)
  else if N.eqb c 2 && ((t =? 1) || (t =? 2)) then Some (1, 0) else None.

(** Contexts 0 and 1 are those of the tasks. Best effort has two: 2 can be disabled, 3 cannot; 2 has work all the
    time. *)
Definition w_all : N := 15.
Definition w_on i : N := match i with 0 => 9 | _ => 11 end.
Definition w_desired (g : N) t : N :=
  if N.eqb g 0 then
    match t with 1 | 2 | 3 | 7 | 8 | 9 => w_on 1 | 4 | 5 | 6 | 11 => w_on 0 | _ => w_all end
  else 0%N.
(** An update takes one instant. *)
Definition w_started (g : N) t :=
  if N.eqb g 0 then match t with 1 | 4 | 7 | 10 | 11 | 12 => Some t | _ => None end else None.
Definition w_work (g : N) t x :=
  N.eqb g 0 && match x with
    | 0 => (t =? 5) || (t =? 6)
    | 1 => (3 <=? t) && (t <? 10)
    | 2 => true
    | 3 => t =? 0
    | _ => false
    end.
Definition w_serves (g : N) t :=
  if N.eqb g 0 then
    match t with 3 | 8 | 9 => Some 1 | 5 | 6 => Some 0 | 1 | 2 | 4 | 7 | 10 | 11 | 12 => None | _ => Some 2 end
  else None.

Definition witness : schedule := {|
  arrival := fun i k => match i with 0 => 3 | _ => 1 end + k * 60;
  release := fun i k => match i with 0 => 3 | _ => 1 end + k * 60;
  complete := fun i k t => match k with 0 => match i with 0 => 7 | _ => 10 end <=? t | _ => true end;
  phase := w_phase;
  opens := fun i k j => match k, i with 0, 0 => 4 | 0, 1 => 2 | _, _ => 0 end;
  closes := fun i k j => match k, i with 0, 0 => 7 | 0, 1 => 10 | _, _ => 0 end;
  host_ready := fun i k t => match i with 0 => t =? 4 | _ => t =? 2 end;
  device_ready := fun i k t => match i with 0 => 5 <=? t | _ => 3 <=? t end;
  exec := w_exec; holder := w_holder;
  changes := fun g t => negb (N.eqb (w_desired g t) (w_desired g (pred t)));
  update := w_started |}.

Definition witness_contexts : mechanism := {|
  desired := w_desired;
  applied := fun g t => w_desired g (pred t);
  started := w_started; on := w_on; work := w_work; serves := w_serves |}.

Notation w_set := (nat_set (set_of witness_certificate)).

Tactic Notation "two" ident(i) := destruct i as [| [| i]]; [| | exfalso; unfold is_task in *; simpl in *; lia].
(** Instants 0 to 13 one by one; nothing happens later. *)
Ltac split_instants n t :=
  lazymatch n with 0 => idtac | S ?m => destruct t as [| t]; [| split_instants m t] end.
Tactic Notation "instants" ident(t) := split_instants 14 t.

Lemma w_phase_job i k t : w_phase i k t <> Idle -> k = 0 /\ i < 2 /\ t < 10.
Proof.
  destruct k; [destruct i as [| [| i]] |]; instants t; simpl; intro H; try congruence; repeat split; lia.
Qed.

Lemma w_started_spec g t b : w_started g t = Some b -> g = 0%N /\ b = t /\ t < 13.
Proof.
  unfold w_started. destruct (N.eqb g 0) eqn:E; try discriminate. apply N.eqb_eq in E.
  intro H. instants t; try discriminate; injection H as <-; repeat split; auto; lia.
Qed.

Lemma w_holder_gpu g t h : w_holder g t = Some h -> g = 0%N.
Proof. unfold w_holder. destruct (N.eqb g 0) eqn:E; try discriminate. intros _. apply N.eqb_eq. auto. Qed.

(** The parts of the model that know no contexts. *)
Lemma witness_tasks : tasks_obey w_set witness.
Proof.
  constructor.
  - intros i k Hi. two i; simpl; lia.
  - intros i k Hi. two i; simpl; lia.
  - intros i k t Hi. destruct k; simpl; auto. rewrite !Nat.leb_le. two i; lia.
  - intros i k t Hi. unfold working, pending. simpl. destruct k.
    + rewrite Nat.leb_gt. two i; instants t; simpl; split; intro H; try congruence;
        try (repeat split; intros; lia); try (exfalso; destruct H as [[H1 H2] _]; simpl in *; lia).
    + split; intro H. destruct i as [| [| i]]; simpl in H; congruence. destruct H as [[_ H] _]. discriminate.
  - intros i k j t Hi. simpl. destruct k.
    + two i; destruct j; instants t; simpl; split; intro H; try discriminate; try (unfold segments; simpl; lia);
        try reflexivity; exfalso; unfold segments in H; simpl in H; lia.
    + split; intro H. destruct i as [| [| i]]; discriminate. destruct i as [| [| i]]; simpl in H; lia.
  - intros i k t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k j t Hi H Hr. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - intros i k j t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; simpl; auto |]); lia.
  - intros c i k t H. simpl in H. unfold w_exec in H. unfold is_task, wants_core. simpl.
    destruct (N.eqb c 1) eqn:E1; simpl in H.
    + apply N.eqb_eq in E1. subst c. simpl in H. instants t; simpl in H; try discriminate; injection H as <- <-; simpl.
      all: repeat split; try lia. left. reflexivity. right. exists 0. auto.
    + destruct (N.eqb c 2) eqn:E2; simpl in H; [| discriminate]. apply N.eqb_eq in E2. subst c.
      instants t; simpl in H; try discriminate; injection H as <- <-; simpl.
      all: repeat split; try lia. left. reflexivity. right. exists 0. auto.
  - intros g t i k j H. simpl in H. unfold w_holder in H. destruct (N.eqb g 0) eqn:E; [| discriminate].
    apply N.eqb_eq in E. subst g. unfold is_task.
    instants t; simpl in H; try discriminate; injection H as <- <- <-; simpl; repeat split; lia.
  - intros i k j t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [first [discriminate H | injection H as <-; simpl; unfold w_holder; simpl;
      do 3 eexists; split; [reflexivity | simpl; first [left; reflexivity | right; lia]]] |]); lia.
Qed.

Lemma witness_cores : cores_obey w_set witness.
Proof.
  constructor.
  - intros i k t Hi Hw. destruct (w_phase_job i k t) as [-> [_ Ht]].
    { destruct Hw as [H | [j [H _]]]; simpl in H; congruence. }
    exists i, 0. split; auto.
    two i; do 10 (destruct t as [| t]; [first [reflexivity |
      exfalso; destruct Hw as [H | [j [H1 H2]]]; [discriminate H | first [discriminate H1 | discriminate H2]]] |]); lia.
  - intros i k j c m Hi Hc Hj Ho Ha. exfalso. unfold above in Ha. two i; two c; simpl in Ha; discriminate.
Qed.

(** The daemon of theorems 7 and 14 does this. *)
Theorem witness_daemon : daemon_obeys w_set witness witness_contexts.
Proof.
  constructor.
  - apply witness_tasks.
  - intros g t i k j H. simpl in H. pose proof (w_holder_gpu _ _ _ H) as ->.
    instants t; simpl in H; try discriminate; injection H as <- <- <-; reflexivity.
  - intros i Hi. two i; reflexivity.
  - intros i x Hi H. assert (Hx : x < 4).
    { destruct (le_lt_dec 4 x); auto. exfalso. unfold has in H. rewrite N.bits_above_log2 in H; [discriminate |].
      two i; simpl; lia. }
    assert (Hidle : forall i t, w_holder (gpu w_set i) t <> None -> w_work (gpu w_set i) t 3 = false).
    { intros h t Ht. destruct (w_holder _ t) as [c |] eqn:E; [| congruence]. pose proof (w_holder_gpu _ _ _ E) as Hg.
      rewrite Hg in *. destruct t; [discriminate E | reflexivity]. }
    two i; destruct x as [| [| [| [| x]]]]; try discriminate H; try lia;
      try (left; reflexivity).
    + right. right. apply (Hidle 0).
    + right. left. unfold is_task. simpl. lia.
    + right. right. apply (Hidle 1).
  - intros g t b H. simpl in *. destruct (w_started_spec g t b H) as [-> [-> _]]. split; auto.
    intros u Hu. replace u with t by lia. auto.
  - intros i g t b Hi _ _ H. simpl in H. destruct (w_started_spec g t b H) as [_ [-> _]]. two i; simpl eps; lia.
  - intros g b H. simpl in *. destruct (w_started_spec g b b H) as [-> _].
    instants b; try discriminate H; vm_compute; discriminate.
  - intros g t H. simpl in *. unfold w_started, w_desired in *. destruct (N.eqb g 0); auto.
    instants t; try discriminate H; reflexivity.
  - intros g t b H _. simpl in *. destruct (w_started_spec g t b H) as [-> [-> _]]. exists t. split; auto.
  - intros g t H. left. simpl in *. unfold w_started, w_desired in *. destruct (N.eqb g 0); auto.
    instants t; try discriminate H; reflexivity.
  - intros g t x H Hx. two x; simpl in *; unfold w_work in H; apply andb_true_iff in H; destruct H as [H Hr];
      apply N.eqb_eq in H; subst g; split; auto; exists 0, 0; instants t; try discriminate Hr; auto.
  - intros i k j t Hi H Hr. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; try discriminate Hr; reflexivity |]); lia.
  - intros g t x H Ha Hw. simpl in *. unfold w_work in Hw. apply andb_true_iff in Hw. destruct Hw as [Hg Hw].
    apply N.eqb_eq in Hg. subst g.
    destruct (w_serves 0 t) as [y |] eqn:E.
    + exists y. split; auto. instants t; try discriminate H; try discriminate E; injection E as <-; split; reflexivity.
    + exfalso. instants t; try discriminate H; try discriminate E.
      destruct x as [| [| [| [| x]]]]; try discriminate Hw; discriminate Ha.
  - intros i k j t Hi H Hr. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 10 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - reflexivity.
  - intros g t. simpl. destruct (w_started g t) as [b |] eqn:H; auto. destruct (w_started_spec g t b H) as [-> [-> _]].
    instants t; try discriminate H; reflexivity.
Qed.

Corollary witness_obeys : obeys w_set witness.
Proof. apply (daemon_model _ _ _ witness_daemon witness_cores). Qed.

(** So the theorems speak of it: both jobs are complete at their bounds, and not at their first instant. *)
Corollary witness_in_time : complete witness 0 0 (3 + 8) = true /\ complete witness 1 0 (1 + 14) = true.
Proof.
  split; [apply (daemon_sound _ witness_accepted _ _ witness_daemon witness_cores 0 0) |
    apply (daemon_sound _ witness_accepted _ _ witness_daemon witness_cores 1 0)]; vm_compute; lia.
Qed.

Lemma witness_works : complete witness 0 0 3 = false /\ complete witness 1 0 9 = false.
Proof. split; reflexivity. Qed.

(** An anticipated update: no window is open, and the context of best effort is disabled. At the begin at 2 the desired
    set is applied, so nothing changes there (lemma 15). One more, at 11, is for a begin that does not come. *)
Lemma witness_anticipates :
  holder witness 0 1 = None /\ started witness_contexts 0 1 = Some 1 /\ has (applied witness_contexts 0 1) 2 = true /\
  has (applied witness_contexts 0 2) 2 = false /\ holder witness 0 2 = Some (1, 0, 0) /\ changes witness 0 2 = false /\
  holder witness 0 11 = None /\ started witness_contexts 0 11 = Some 11.
Proof. repeat split. Qed.

(** An enabled idle context: task 1 holds the GPU, no update is in progress, the context of task 0 is enabled and the
    GPU serves task 1. *)
Lemma witness_keeps : holder witness 0 3 = Some (1, 0, 0) /\ update witness 0 3 = None /\
  has (applied witness_contexts 0 3) 0 = true /\ serves witness_contexts 0 3 = Some 1.
Proof. repeat split. Qed.
