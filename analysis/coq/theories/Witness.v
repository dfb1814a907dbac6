(* SPDX-License-Identifier: Apache-2.0 *)
(** The model is not empty: a schedule of two tasks on two cores that share a GPU obeys it. The low task begins first
    and works on the device; the high task begins and takes the GPU from it; the low task gets it back. Each change of
    the holder is followed by an update of one instant. Later jobs of both have nothing to do. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Window Checker Sound.
Import ListNotations.

(** Task 0 is the high one. The bounds are those of the recurrences. *)
Definition witness_certificate := Certificate [GpuLine 1 0]
  [TaskLine 1 0 0 30 30 60 60 0 0 1 1 8 [SegmentLine 1 2 3 6];
   TaskLine 2 0 1 20 20 60 60 0 0 1 1 14 [SegmentLine 1 3 4 12]].

Lemma witness_accepted : check witness_certificate = true.
Proof. vm_compute. reflexivity. Qed.

(**  t        0    1     2     3     4     5     6     7     8     9
     task 1   cpu  host  dev   -     -     -     -     dev   dev
     task 0              cpu   host  dev   dev
     update        1           3                 6                 9     *)
Definition w_phase i k t :=
  match k, i with
  | 0, 0 => if t =? 2 then Cpu else if (3 <=? t) && (t <? 6) then Win 0 else Idle
  | 0, 1 => if t =? 0 then Cpu else if (1 <=? t) && (t <? 9) then Win 0 else Idle
  | _, _ => Idle
  end.
Definition w_holder (g : N) t :=
  if N.eqb g 0 then
    if (3 <=? t) && (t <? 6) then Some (0, 0, 0)
    else if (1 <=? t) && (t <? 9) then Some (1, 0, 0) else None
  else None.
Definition w_update (g : N) t :=
  if N.eqb g 0 && ((t =? 1) || (t =? 3) || (t =? 6) || (t =? 9)) then Some t else None.
Definition w_exec (c : N) t :=
  if N.eqb c 1 && ((t =? 2) || (t =? 3)) then Some (0, 0)
  else if N.eqb c 2 && (t <? 2) then Some (1, 0) else None.

Definition witness : schedule := {|
  arrival := fun i k => match i with 0 => 2 | _ => 0 end + k * 60;
  release := fun i k => match i with 0 => 2 | _ => 0 end + k * 60;
  complete := fun i k t => match k with 0 => match i with 0 => 6 | _ => 9 end <=? t | _ => true end;
  phase := w_phase;
  opens := fun i k j => match k, i with 0, 0 => 3 | 0, 1 => 1 | _, _ => 0 end;
  closes := fun i k j => match k, i with 0, 0 => 6 | 0, 1 => 9 | _, _ => 0 end;
  host_ready := fun i k t => match i with 0 => t =? 3 | _ => t =? 1 end;
  device_ready := fun i k t => match i with 0 => 4 <=? t | _ => 2 <=? t end;
  exec := w_exec; holder := w_holder; update := w_update |}.

Notation w_set := (nat_set (set_of witness_certificate)).

Tactic Notation "two" ident(i) := destruct i as [| [| i]]; [| | exfalso; unfold is_task in *; simpl in *; lia].
(** Instants 0 to 10 one by one; nothing happens later. *)
Ltac split_instants n t :=
  lazymatch n with 0 => idtac | S ?m => destruct t as [| t]; [| split_instants m t] end.
Tactic Notation "instants" ident(t) := split_instants 11 t.

Lemma w_phase_job i k t : w_phase i k t <> Idle -> k = 0 /\ i < 2 /\ t < 9.
Proof.
  destruct k; [destruct i as [| [| i]] |]; instants t; simpl; intro H; try congruence; repeat split; lia.
Qed.

Lemma w_update_spec g t c : w_update g t = Some c -> g = 0%N /\ c = t /\ (t = 1 \/ t = 3 \/ t = 6 \/ t = 9).
Proof.
  unfold w_update. destruct (N.eqb g 0) eqn:E; simpl; try discriminate. apply N.eqb_eq in E.
  intro H. instants t; simpl in H; try discriminate; injection H as <-; repeat split; auto; lia.
Qed.

Theorem witness_obeys : obeys w_set witness.
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
    two i; do 9 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 9 (destruct t as [| t]; [try discriminate H; vm_compute; lia |]); lia.
  - intros i k j t Hi H Hr. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 9 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - intros i k j t Hi H Hr. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 9 (destruct t as [| t]; [try discriminate H; try discriminate Hr; injection H as <-; vm_compute; lia |]);
      lia.
  - intros i k j t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 9 (destruct t as [| t]; [try discriminate H; simpl; auto |]); lia.
  - intros c i k t H. simpl in H. unfold w_exec in H. unfold is_task, wants_core. simpl.
    destruct (N.eqb c 1) eqn:E1; simpl in H.
    + apply N.eqb_eq in E1. subst c. simpl in H. instants t; simpl in H; try discriminate; injection H as <- <-; simpl.
      all: repeat split; try lia. left. reflexivity. right. exists 0. auto.
    + destruct (N.eqb c 2) eqn:E2; simpl in H; [| discriminate]. apply N.eqb_eq in E2. subst c.
      instants t; simpl in H; try discriminate; injection H as <- <-; simpl.
      all: repeat split; try lia. left. reflexivity. right. exists 0. auto.
  - intros i k t Hi Hw. destruct (w_phase_job i k t) as [-> [_ Ht]].
    { destruct Hw as [H | [j [H _]]]; simpl in H; congruence. }
    exists i, 0. split; auto.
    two i; do 9 (destruct t as [| t]; [first [reflexivity |
      exfalso; destruct Hw as [H | [j [H1 H2]]]; [discriminate H | first [discriminate H1 | discriminate H2]]] |]); lia.
  - intros i k j c m Hi Hc Hj Ho Ha. exfalso. unfold above in Ha. two i; two c; simpl in Ha; discriminate.
  - intros g t i k j H. simpl in H. unfold w_holder in H. destruct (N.eqb g 0) eqn:E; [| discriminate].
    apply N.eqb_eq in E. subst g. unfold is_task.
    instants t; simpl in H; try discriminate; injection H as <- <- <-; simpl; repeat split; lia.
  - intros i k j t Hi H. destruct (w_phase_job i k t) as [-> [_ Ht]]. simpl in H. congruence.
    two i; do 9 (destruct t as [| t]; [first [discriminate H | injection H as <-; simpl; unfold w_holder; simpl;
      do 3 eexists; split; [reflexivity | simpl; first [left; reflexivity | right; lia]]] |]); lia.
  - intros g t c H. simpl in H. destruct (w_update_spec g t c H) as [-> [-> Hc]]. split; auto.
    unfold changed, before. destruct Hc as [-> | [-> | [-> | ->]]]; simpl; unfold w_holder; simpl; discriminate.
  - intros i g t c Hi _ _ H. destruct (w_update_spec g t c H) as [_ [-> _]]. two i; simpl; lia.
  - intros i g c t Hi _ _. eapply Nat.le_trans.
    + apply (cnt_inside_length _ 0 t c (S c)). intros u _ H. unfold update_is in H.
      destruct (update witness g u) as [c' |] eqn:E; try discriminate. apply Nat.eqb_eq in H. subst.
      destruct (w_update_spec g u c E) as [_ [-> _]]. lia.
    + two i; simpl eps; lia.
  - intros g t c c' H Hc. destruct (w_update_spec g t c H) as [_ [-> _]]. lia.
Qed.

(** So the theorem speaks of it: both jobs are complete at their bounds, and not at their first instant. *)
Corollary witness_in_time : complete witness 0 0 (2 + 8) = true /\ complete witness 1 0 14 = true.
Proof.
  split; [apply (checker_sound _ witness_accepted _ witness_obeys 0 0) | apply (checker_sound _ witness_accepted _ witness_obeys 1 0)];
  vm_compute; lia.
Qed.

Lemma witness_works : complete witness 0 0 2 = false /\ complete witness 1 0 8 = false.
Proof. split; reflexivity. Qed.
