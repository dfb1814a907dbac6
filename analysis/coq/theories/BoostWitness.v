(* SPDX-License-Identifier: Apache-2.0 *)
(** The model with boost is not empty: a thread with a window delays the thread above it on its core, because it is
    boosted for the host part of its end. Later jobs have nothing to do. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Contexts Window Checker Sound Witness BoostChecker Boost
  BoostSound.
Import ListNotations.

(** Task 0 is the one above; it has no window. The bounds are those of the recurrences. *)
Definition boosted_certificate := Certificate [GpuLine 1 0]
  [TaskLine 1 0 0 30 30 60 60 0 0 2 1 4 [];
   TaskLine 1 0 1 20 20 60 60 0 0 1 1 8 [SegmentLine 2 1 3 3]].

Lemma boosted_accepted : boost_check boosted_certificate = true.
Proof. vm_compute. reflexivity. Qed.

(**  t        0    1     2     3     4
     task 0              cpu   -     cpu
     task 1   cpu  host  dev   host
     desired  all  On 1  On 1  On 1  all
     update        1                 4     *)
Definition b_phase i k t :=
  match k, i with
  | 0, 0 => if (2 <=? t) && (t <? 5) then Cpu else Idle
  | 0, 1 => if t =? 0 then Cpu else if (1 <=? t) && (t <? 4) then Win 0 else Idle
  | _, _ => Idle
  end.
Definition b_holder (g : N) t :=
  if N.eqb g 0 then if (1 <=? t) && (t <? 4) then Some (1, 0, 0) else None else None.
Definition b_exec (c : N) t :=
  if N.eqb c 1 then match t with 0 | 1 | 3 => Some (1, 0) | 2 | 4 => Some (0, 0) | _ => None end else None.
Definition b_on i : N := match i with 0 => 1 | _ => 2 end.
Definition b_desired (g : N) t : N := if N.eqb g 0 then match t with 1 | 2 | 3 => b_on 1 | _ => 6 end else 0%N.
Definition b_started (g : N) t := if N.eqb g 0 then match t with 1 | 4 => Some t | _ => None end else None.
Definition b_work (g : N) t x := N.eqb g 0 && match x with 1 => t =? 2 | 2 => true | _ => false end.
Definition b_serves (g : N) t :=
  if N.eqb g 0 then match t with 2 => Some 1 | 1 | 3 | 4 => None | _ => Some 2 end else None.

Definition boosted_witness : schedule := {|
  arrival := fun i k => match i with 0 => 2 | _ => 0 end + k * 60;
  release := fun i k => match i with 0 => 2 | _ => 0 end + k * 60;
  complete := fun i k t => match k with 0 => match i with 0 => 5 | _ => 4 end <=? t | _ => true end;
  phase := b_phase;
  opens := fun i k j => match k, i with 0, 1 => 1 | _, _ => 0 end;
  closes := fun i k j => match k, i with 0, 1 => 4 | _, _ => 0 end;
  host_ready := fun i k t => match i with 1 => (t =? 1) || (t =? 3) | _ => false end;
  device_ready := fun i k t => match i with 1 => t =? 2 | _ => false end;
  exec := b_exec; holder := b_holder;
  changes := fun g t => negb (N.eqb (b_desired g t) (b_desired g (pred t)));
  update := b_started |}.

Definition boosted_contexts : mechanism := {|
  desired := b_desired;
  applied := fun g t => b_desired g (pred t);
  started := b_started; on := b_on; work := b_work; serves := b_serves |}.

Notation b_set := (nat_set (set_of boosted_certificate)).
Tactic Notation "moments" ident(t) := split_instants 6 t.

Lemma b_phase_job i k t : b_phase i k t <> Idle -> k = 0 /\ i < 2 /\ t < 5.
Proof.
  destruct k; [destruct i as [| [| i]] |]; moments t; simpl; intro H; try congruence; repeat split; lia.
Qed.

Lemma b_started_spec g t b : b_started g t = Some b -> g = 0%N /\ b = t /\ t < 5.
Proof.
  unfold b_started. destruct (N.eqb g 0) eqn:E; try discriminate. apply N.eqb_eq in E.
  intro H. moments t; try discriminate; injection H as <-; repeat split; auto; lia.
Qed.

Lemma b_holder_gpu g t h : b_holder g t = Some h -> g = 0%N.
Proof. unfold b_holder. destruct (N.eqb g 0) eqn:E; try discriminate. intros _. apply N.eqb_eq. auto. Qed.

Lemma boosted_tasks : tasks_obey b_set boosted_witness.
Proof.
  constructor.
  - intros i k Hi. two i; simpl; lia.
  - intros i k Hi. two i; simpl; lia.
  - intros i k t Hi. destruct k; simpl; auto. rewrite !Nat.leb_le. two i; lia.
  - intros i k t Hi. unfold working, pending. simpl. destruct k.
    + rewrite Nat.leb_gt. two i; moments t; simpl; split; intro H; try congruence;
        try (repeat split; intros; lia); try (exfalso; destruct H as [[H1 H2] _]; simpl in *; lia).
    + split; intro H. destruct i as [| [| i]]; simpl in H; congruence. destruct H as [[_ H] _]. discriminate.
  - intros i k j t Hi. simpl. destruct k.
    + two i; destruct j; moments t; simpl; split; intro H; try discriminate; try (unfold segments; simpl; lia);
        try reflexivity; exfalso; unfold segments in H; simpl in H; lia.
    + split; intro H. destruct i as [| [| i]]; discriminate. destruct i as [| [| i]]; simpl in H; lia.
  - intros i k t Hi H. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k t Hi H. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k j t Hi H Hr. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - intros i k j t Hi H. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; simpl; auto |]); lia.
  - intros c i k t H. simpl in H. unfold b_exec in H. unfold is_task, wants_core. simpl.
    destruct (N.eqb c 1) eqn:E1; [| discriminate]. apply N.eqb_eq in E1. subst c.
    moments t; simpl in H; try discriminate; injection H as <- <-; simpl; repeat split; auto; right; exists 0; auto.
  - intros g t i k j H. simpl in H. pose proof (b_holder_gpu _ _ _ H) as ->. unfold is_task.
    moments t; simpl in H; try discriminate; injection H as <- <- <-; simpl; repeat split; lia.
  - intros i k j t Hi H. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [first [discriminate H | injection H as <-; simpl; unfold b_holder; simpl;
      do 3 eexists; split; [reflexivity | simpl; first [left; reflexivity | right; lia]]] |]); lia.
Qed.

Lemma b_open k t : in_some_window boosted_witness 1 k t <-> k = 0 /\ 1 <= t < 4.
Proof.
  unfold in_some_window. simpl. split.
  - intros [j H]. destruct k; [| discriminate]. moments t; simpl in H; try discriminate; lia.
  - intros [-> H]. exists 0. moments t; try lia; reflexivity.
Qed.

(** The boost: at 3 the core serves task 1, which is below task 0. *)
Lemma boosted_cores : boost_cores_obey b_set boosted_witness.
Proof.
  constructor.
  - intros i k t Hi Hw. destruct (b_phase_job i k t) as [-> [_ Ht]].
    { destruct Hw as [H | [j [H _]]]; simpl in H; congruence. }
    assert (Hno : forall u, ~ in_some_window boosted_witness 0 0 u).
    { intros u [j H]. simpl in H. moments u; discriminate. }
    two i.
    + destruct (Nat.eq_dec t 3) as [-> | Hne].
      * exists 1, 0. split; [reflexivity |]. right. left. split; [apply b_open; lia | apply Hno].
      * exists 0, 0. split; auto.
        do 5 (destruct t as [| t]; [first [reflexivity | exfalso; destruct Hw as [H | [j [H _]]];
          discriminate H | lia] |]); lia.
    + exists 1, 0. split; auto.
      do 5 (destruct t as [| t]; [first [reflexivity | exfalso; destruct Hw as [H | [j [H1 H2]]];
        [discriminate H | first [discriminate H1 | discriminate H2]]] |]); lia.
  - intros i k j Hi Hj Ho. two i; [unfold segments in Hj; simpl in Hj; lia |]. destruct k; [| simpl in Ho; lia].
    exists 0. simpl. split; [lia |]. intros c m Hc Ha Hw.
    destruct m; [| destruct Hw as [H | [j' [H _]]]; destruct c as [| [| c]]; discriminate H].
    two c; [| discriminate Ha]. destruct Hw as [H | [j' [H _]]]; discriminate H.
Qed.

Theorem boosted_daemon : daemon_obeys b_set boosted_witness boosted_contexts.
Proof.
  constructor.
  - apply boosted_tasks.
  - intros g t i k j H. simpl in H. pose proof (b_holder_gpu _ _ _ H) as ->.
    moments t; simpl in H; try discriminate; injection H as <- <- <-; reflexivity.
  - intros i Hi. two i; reflexivity.
  - intros i x Hi H. assert (Hx : x < 2).
    { destruct (le_lt_dec 2 x); auto. exfalso. unfold has in H. rewrite N.bits_above_log2 in H; [discriminate |].
      two i; simpl; lia. }
    two i; destruct x as [| [| x]]; try discriminate H; try lia; left; reflexivity.
  - intros g t b H. simpl in *. destruct (b_started_spec g t b H) as [-> [-> _]]. split; auto.
    intros u Hu. replace u with t by lia. auto.
  - intros i g t b Hi _ _ H. simpl in H. destruct (b_started_spec g t b H) as [_ [-> _]]. two i; simpl eps; lia.
  - intros g b H. simpl in *. destruct (b_started_spec g b b H) as [-> _].
    moments b; try discriminate H; vm_compute; discriminate.
  - intros g t H. simpl in *. unfold b_started, b_desired in *. destruct (N.eqb g 0); auto.
    moments t; try discriminate H; reflexivity.
  - intros g t b H _. simpl in *. destruct (b_started_spec g t b H) as [-> [-> _]]. exists t. split; auto.
  - intros g t H. left. simpl in *. unfold b_started, b_desired in *. destruct (N.eqb g 0); auto.
    moments t; try discriminate H; reflexivity.
  - intros g t x H Hx. two x; simpl in *; unfold b_work in H; apply andb_true_iff in H; destruct H as [H Hr];
      try discriminate Hr; apply N.eqb_eq in H; subst g; split; auto; exists 0, 0; moments t; try discriminate Hr; auto.
  - intros i k j t Hi H Hr. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; try discriminate Hr; reflexivity |]); lia.
  - intros g t x H Ha Hw. simpl in *. unfold b_work in Hw. apply andb_true_iff in Hw. destruct Hw as [Hg Hw].
    apply N.eqb_eq in Hg. subst g.
    destruct (b_serves 0 t) as [y |] eqn:E.
    + exists y. split; auto. moments t; try discriminate H; try discriminate E; injection E as <-; split; reflexivity.
    + exfalso. moments t; try discriminate H; try discriminate E.
      destruct x as [| [| [| x]]]; try discriminate Hw; discriminate Ha.
  - intros i k j t Hi H Hr. destruct (b_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 5 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - reflexivity.
  - intros g t. simpl. destruct (b_started g t) as [b |] eqn:H; auto. destruct (b_started_spec g t b H) as [-> [-> _]].
    moments t; try discriminate H; reflexivity.
Qed.

Theorem boosted_witness_obeys : boost_obeys b_set boosted_witness.
Proof. apply (daemon_boost_model _ _ _ boosted_daemon boosted_cores). Qed.

(** So theorem 11 speaks of it: both jobs are complete at their bounds, and not long before. *)
Corollary boosted_in_time :
  complete boosted_witness 0 0 (2 + 4) = true /\ complete boosted_witness 1 0 (0 + 8) = true.
Proof.
  split; [apply (boost_daemon_sound _ boosted_accepted _ _ boosted_daemon boosted_cores 0 0) |
    apply (boost_daemon_sound _ boosted_accepted _ _ boosted_daemon boosted_cores 1 0)]; vm_compute; lia.
Qed.

(** Without boost the core would serve task 0 at 3. *)
Lemma boost_matters : wants_core boosted_witness 0 0 3 /\ exec boosted_witness 1 3 = Some (1, 0) /\
  ~ cores_obey b_set boosted_witness.
Proof.
  split; [left; reflexivity | split; [reflexivity |]]. intro H.
  destruct (core_served _ _ H 0 0 3) as [h [m [He Hp]]]; [vm_compute; lia | left; reflexivity |].
  injection He as <- <-. destruct Hp as [Hp | Hp]; [discriminate Hp | vm_compute in Hp; congruence].
Qed.
