(* SPDX-License-Identifier: Apache-2.0 *)
(** Theorem 1 of analysis/docs/window.md, threads suspend: in every schedule that obeys the model, every job is
    complete R after its arrival, if R and F satisfy the recurrences and the hypotheses on priorities hold. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model.
Import ListNotations.

(** The functions of Recurrence.v in natural numbers. *)
Definition ident (n : nat) := n.
Notation n_uses := (uses nat).
Notation n_above := (above nat).
Notation n_hpp := (hpp nat).
Notation n_rem := (rem nat).
Notation n_same := (same_gpu nat).
Notation n_Gm := (Gm nat 0 Nat.add).
Notation n_Ge := (Ge nat 0 Nat.add).
Notation n_updates := (updates nat Nat.add Nat.mul ident).
Notation n_cpu := (cpu_work nat 0 Nat.add).
Notation n_hold := (hold nat 0 Nat.add Nat.mul ident).
Notation n_whole := (whole nat 0 Nat.add Nat.mul ident).
Notation n_local := (local nat 0 Nat.add Nat.mul Nat.sub ceil_nat ident).
Notation n_cost := (stop_cost nat 0 Nat.add Nat.mul ident).
Notation n_stoppers := (stoppers nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_stop_time := (stop_time nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_windows := (windows nat 0 Nat.add Nat.mul Nat.sub ceil_nat ident).
Notation n_window_rhs := (window_rhs nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_rhs := (rhs nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).

(** What the checker checks, in natural numbers. *)
Record valid (p : set nat) : Prop := {
  T_positive : forall i, i < count p -> 0 < T p i;
  D_at_most_T : forall i, i < count p -> D p i <= T p i;
  R_at_most_D : forall i, i < count p -> R p i <= D p i;
  R_above_rhs : forall i, i < count p -> n_rhs p i <= R p i;
  F_above_rhs : forall i s, i < count p -> In s (segs p i) ->
    R p i <= length_bound s \/ n_window_rhs p i s (length_bound s) <= length_bound s;
  no_blocking : forall i, i < count p -> length (segs p i) = 0 -> B p i = 0;
  cpu_distinct : forall i h, i < count p -> h < count p -> i <> h -> core p i = core p h -> prio p i <> prio p h;
  gpu_distinct : forall i h, i < count p -> h < count p -> i <> h -> n_same p i h = true ->
    gprio p i <> gprio p h;
  same_order : forall i h, i < count p -> h < count p -> i <> h -> core p i = core p h -> n_same p i h = true ->
    ((prio p i < prio p h)%N <-> (gprio p i < gprio p h)%N) }.

Lemma total_nth {X} (l : list X) d f : total (seq 0 (length l)) (fun j => f (nth j l d)) = total l f.
Proof.
  assert (H : forall k (g : nat -> nat), total (seq k (length l)) (fun j => f (nth (j - k) l d)) = total l f).
  { induction l; intros; simpl; auto. rewrite Nat.sub_diag. f_equal.
    rewrite <- (IHl (S k) g). apply total_ext. intros x Hx. apply in_seq in Hx.
    replace (x - k) with (S (x - S k)) by lia. reflexivity. }
  rewrite <- (H 0 (fun x => x)). apply total_ext. intros. rewrite Nat.sub_0_r. reflexivity.
Qed.

Lemma cnt_list {X} (P : nat -> bool) (l : list X) (Q : X -> nat -> bool) a b :
  (forall t, a <= t < b -> P t = true -> exists x, In x l /\ Q x t = true) ->
  cnt P a b <= total l (fun x => cnt (Q x) a b).
Proof.
  intro H. eapply Nat.le_trans; [apply (cnt_mono _ (fun t => existsb (fun R => R t) (map Q l)))|].
  - intros t Ht HP. destruct (H t Ht HP) as [x [Hx HQ]]. apply existsb_exists. exists (Q x). split; auto.
    apply in_map; auto.
  - eapply Nat.le_trans. apply cnt_any. rewrite total_map. lia.
Qed.

Section Proof.
  Variable p : set nat.
  Variable s : schedule.
  Hypothesis V : valid p.
  Hypothesis M : obeys p s.

  Notation task i := (i < count p).
  Notation arr := (arrival s).
  Notation ph := (phase s).

  (** ** Jobs and windows *)

  Lemma phase_pending i k t : task i -> ph i k t <> Idle -> pending s i k t.
  Proof. intros Hi H. apply (phase_working _ _ M) in H; auto. destruct H; auto. Qed.

  Lemma one_job i k m t : task i -> ph i k t <> Idle -> ph i m t <> Idle -> k = m.
  Proof.
    intros Hi Hk Hm. apply (phase_working _ _ M) in Hk; auto. apply (phase_working _ _ M) in Hm; auto.
    destruct Hk as [[_ Hk1] Hk2], Hm as [[_ Hm1] Hm2].
    destruct (lt_eq_lt_dec k m) as [[L | E] | L]; auto; exfalso.
    - rewrite Hm2 in Hk1; congruence.
    - rewrite Hk2 in Hm1; congruence.
  Qed.

  Lemma one_window i k m j j' t : task i -> ph i k t = Win j -> ph i m t = Win j' -> k = m /\ j = j'.
  Proof.
    intros Hi H1 H2. assert (k = m). { apply (one_job i k m t); auto; congruence. }
    subst. split; auto. congruence.
  Qed.

  Lemma wants_phase i k t : wants_core s i k t -> ph i k t <> Idle.
  Proof. intros [H | [j [H _]]]; congruence. Qed.

  Lemma window_uses i k t j : task i -> ph i k t = Win j -> n_uses p i = true /\ j < segments p i.
  Proof.
    intros Hi H. apply (phase_window _ _ M) in H; auto. destruct H as [Hj _]. split; auto.
    unfold uses, eta. unfold segments in Hj. destruct (length (segs p i)); auto. lia.
  Qed.

  Lemma window_open i k t j : task i -> ph i k t = Win j -> opens s i k j <= t < closes s i k j.
  Proof. intros Hi H. apply (phase_window _ _ M) in H; auto. tauto. Qed.

  Lemma open_window i k t t' j : task i -> ph i k t = Win j -> opens s i k j <= t' < closes s i k j -> ph i k t' = Win j.
  Proof.
    intros Hi H Ht. apply (phase_window _ _ M); auto. apply (phase_window _ _ M) in H; auto. tauto.
  Qed.

  (** x outranks i on the GPU of both. *)
  Definition outranks i x := task x /\ x <> i /\ n_same p i x = true /\ (gprio p i < gprio p x)%N.

  Lemma same_intro i x : n_uses p i = true -> n_uses p x = true -> gpu p x = gpu p i -> n_same p i x = true.
  Proof. intros H1 H2 H3. unfold same_gpu. rewrite H1, H2, H3, N.eqb_refl. reflexivity. Qed.

  Lemma same_gpu_eq i x : n_same p i x = true -> gpu p x = gpu p i.
  Proof. unfold same_gpu. rewrite !andb_true_iff. intros [_ H]. apply N.eqb_eq. auto. Qed.

  Lemma same_uses i x : n_same p i x = true -> n_uses p i = true /\ n_uses p x = true.
  Proof. unfold same_gpu. rewrite !andb_true_iff. tauto. Qed.

  Lemma uses_segments i : n_uses p i = true -> segments p i <> 0.
  Proof. unfold uses, eta, segments. destruct (length (segs p i)); simpl; congruence. Qed.

  (** M1: an open window is the holder, or a task that outranks it holds the GPU. *)
  Lemma holder_or_outranked i k t j : task i -> ph i k t = Win j ->
    exists h m j', holder s (gpu p i) t = Some (h, m, j') /\ ((h = i /\ m = k /\ j' = j) \/ outranks i h).
  Proof.
    intros Hi H. destruct (holder_highest _ _ M i k j t Hi H) as [h [m [j' [Hh Hr]]]].
    exists h, m, j'. split; auto. destruct (holder_open _ _ M _ _ _ _ _ Hh) as [Ht [Hg Hp]].
    destruct (Nat.eq_dec h i) as [-> | Hn].
    - left. destruct (one_window i k m j j' t); auto.
    - right. destruct Hr as [|Hr]; try contradiction. repeat split; auto.
      + apply same_intro; auto. eapply window_uses; eauto. eapply window_uses; eauto.
      + assert (gprio p i <> gprio p h). { apply (gpu_distinct _ V); auto. apply same_intro; auto.
          eapply window_uses; eauto. eapply window_uses; eauto. }
        lia.
  Qed.

  Lemma holder_facts g t h m j : holder s g t = Some (h, m, j) -> task h /\ gpu p h = g /\ ph h m t = Win j.
  Proof. apply (holder_open _ _ M). Qed.

  (** Every change of the holder is a begin of the new one or an end of the old one. *)
  Lemma change_cause g c : changed s g c ->
    (exists n m j, holder s g c = Some (n, m, j) /\ opens s n m j = c) \/
    (exists o m j b, c = S b /\ holder s g b = Some (o, m, j) /\ closes s o m j = c).
  Proof.
    intro Hc. unfold changed, before in Hc. destruct c as [| b].
    - destruct (holder s g 0) as [[[n m] j] |] eqn:E; try congruence. left. exists n, m, j. split; auto.
      destruct (holder_facts _ _ _ _ _ E) as [Hn [_ Hp]]. apply window_open in Hp; auto. lia.
    - destruct (holder s g (S b)) as [[[n m] j] |] eqn:E.
      + destruct (holder_facts _ _ _ _ _ E) as [Hn [Hg Hp]]. pose proof (window_open _ _ _ _ Hn Hp) as Ho.
        destruct (Nat.eq_dec (opens s n m j) (S b)) as [Eo | No]. left. exists n, m, j. auto.
        right. assert (Hpb : ph n m b = Win j). { apply (open_window _ _ _ b _ Hn Hp). lia. }
        destruct (holder_or_outranked _ _ _ _ Hn Hpb) as [o [m' [j' [Ho' Hr]]]]. rewrite Hg in Ho'.
        exists o, m', j', b. repeat split; auto.
        destruct Hr as [[-> [-> ->]] | Hr]. congruence.
        destruct (holder_facts _ _ _ _ _ Ho') as [Hto [Hgo Hpo]]. pose proof (window_open _ _ _ _ Hto Hpo).
        destruct (Nat.eq_dec (closes s o m' j') (S b)); auto. exfalso.
        assert (Hpo' : ph o m' (S b) = Win j'). { apply (open_window _ _ _ (S b) _ Hto Hpo). lia. }
        destruct (holder_or_outranked _ _ _ _ Hto Hpo') as [n' [m2 [j2 [Hn' Hr']]]].
        rewrite Hgo, E in Hn'. injection Hn' as <- <- <-.
        destruct Hr as [_ [Hne [_ Hlt]]]. destruct Hr' as [[Hx _] | [_ [_ [_ Hlt']]]]. congruence. lia.
      + right. destruct (holder s g b) as [[[o m] j] |] eqn:Eb; try congruence. exists o, m, j, b. repeat split; auto.
        destruct (holder_facts _ _ _ _ _ Eb) as [Hto [Hgo Hpo]]. pose proof (window_open _ _ _ _ Hto Hpo).
        destruct (Nat.eq_dec (closes s o m j) (S b)); auto. exfalso.
        assert (Hpo' : ph o m (S b) = Win j). { apply (open_window _ _ _ (S b) _ Hto Hpo). lia. }
        destruct (holder_or_outranked _ _ _ _ Hto Hpo') as [n' [m2 [j2 [Hn' _]]]]. rewrite Hgo, E in Hn'. discriminate.
  Qed.

  (** The job whose begin or end causes the change at c. *)
  Definition owner g c : option (nat * nat) :=
    let old := match before s g c with Some (o, m, _) => Some (o, m) | None => None end in
    match holder s g c with
    | Some (n, m, j) => if Nat.eqb (opens s n m j) c then Some (n, m) else old
    | None => old
    end.

  Lemma owner_begin g c n m j : holder s g c = Some (n, m, j) -> opens s n m j = c -> owner g c = Some (n, m).
  Proof. intros H E. unfold owner. rewrite H, E, Nat.eqb_refl. reflexivity. Qed.

  (** The window of the owner begins or ends at c. *)
  Lemma owner_window g c x m : changed s g c -> owner g c = Some (x, m) ->
    task x /\ gpu p x = g /\ exists j, j < segments p x /\
      ((opens s x m j = c /\ ph x m c = Win j) \/ (closes s x m j = c /\ exists b, c = S b /\ ph x m b = Win j)).
  Proof.
    intros Hc Ho. assert (Hold : forall b o m' j', c = S b -> holder s g b = Some (o, m', j') ->
      closes s o m' j' = c -> o = x -> m' = m -> task x /\ gpu p x = g /\ exists j, j < segments p x /\
      ((opens s x m j = c /\ ph x m c = Win j) \/ (closes s x m j = c /\ exists b, c = S b /\ ph x m b = Win j))).
    { intros b o m' j' -> Hb Hcl -> ->. destruct (holder_facts _ _ _ _ _ Hb) as [Ht [Hg Hp]].
      repeat split; auto. exists j'. split. eapply window_uses; eauto. right. split; auto. exists b. auto. }
    destruct (change_cause g c Hc) as [[n [m' [j [Hn Hop]]]] | [o [m' [j [b [Hb [Hh Hcl]]]]]]].
    - rewrite (owner_begin _ _ _ _ _ Hn Hop) in Ho. injection Ho as <- <-.
      destruct (holder_facts _ _ _ _ _ Hn) as [Ht [Hg Hp]]. repeat split; auto. exists j. split.
      eapply window_uses; eauto. left. auto.
    - unfold owner in Ho. destruct (holder s g c) as [[[n m2] j2] |] eqn:E.
      + destruct (Nat.eqb (opens s n m2 j2) c) eqn:Eo.
        * apply Nat.eqb_eq in Eo. injection Ho as <- <-. destruct (holder_facts _ _ _ _ _ E) as [Ht [Hg Hp]].
          repeat split; auto. exists j2. split. eapply window_uses; eauto. left. auto.
        * subst c. simpl in Ho. rewrite Hh in Ho. injection Ho as <- <-. eapply (Hold b); eauto.
      + subst c. simpl in Ho. rewrite Hh in Ho. injection Ho as <- <-. eapply (Hold b); eauto.
  Qed.

  (** ** Lemma 3 (updates) *)

  Definition holder_eqb (a b : option (nat * nat * nat)) : bool :=
    match a, b with
    | Some (x, m, j), Some (x', m', j') => Nat.eqb x x' && Nat.eqb m m' && Nat.eqb j j'
    | None, None => true
    | _, _ => false
    end.

  Lemma holder_eqb_eq a b : holder_eqb a b = true -> a = b.
  Proof.
    destruct a as [[[x m] j] |], b as [[[x' m'] j'] |]; simpl; try discriminate; auto.
    rewrite !andb_true_iff, !Nat.eqb_eq. intros [[-> ->] ->]. reflexivity.
  Qed.

  (** The last change at or before b. *)
  Fixpoint last_change g b : nat :=
    match b with
    | 0 => 0
    | S a => if holder_eqb (holder s g b) (holder s g a) then last_change g a else b
    end.

  Lemma last_change_le g b : last_change g b <= b.
  Proof. induction b; simpl; auto. destruct (holder_eqb _ _); lia. Qed.

  Lemma last_change_same g b t : last_change g b <= t <= b -> holder s g t = holder s g b.
  Proof.
    induction b; simpl; intro H. replace t with 0 by lia. reflexivity.
    destruct (holder_eqb (holder s g (S b)) (holder s g b)) eqn:E.
    - apply holder_eqb_eq in E. destruct (Nat.eq_dec t (S b)) as [-> |]; auto.
      rewrite E. apply IHb. lia.
    - replace t with (S b) by lia. reflexivity.
  Qed.

  Lemma last_change_last g b c : changed s g c -> c <= b -> c <= last_change g b.
  Proof.
    intros Hc Hb. destruct (le_lt_dec c (last_change g b)) as [| L]; auto. exfalso. apply Hc.
    destruct c as [| c']. lia. simpl.
    rewrite (last_change_same g b (S c')) by lia. rewrite (last_change_same g b c') by lia. reflexivity.
  Qed.

  (** The update that is in progress, or pending, when the holder at b became so. *)
  Definition in_flight g b : nat :=
    match last_change g b with 0 => 0 | S a => match update s g a with Some c => c | None => 0 end end.

  Lemma in_flight_spec g b c t : changed s g c -> update s g t = Some c -> c < last_change g b -> b <= t ->
    changed s g (last_change g b) -> c = in_flight g b.
  Proof.
    intros Hc Hu Hlt Hb Hl. unfold in_flight. pose proof (last_change_le g b) as Hle.
    destruct (last_change g b) as [| a] eqn:E. lia.
    pose proof (update_serial _ _ M g t c (S a) Hu ltac:(lia) Hl) as H. simpl in H. rewrite H. reflexivity.
  Qed.

  Lemma last_change_changed g b c : changed s g c -> c <= b -> changed s g (last_change g b).
  Proof.
    intros Hc. induction b; simpl; intro Hb. replace c with 0 in Hc by lia. auto.
    destruct (holder_eqb (holder s g (S b)) (holder s g b)) eqn:E.
    - apply IHb. destruct (Nat.eq_dec c (S b)) as [-> |]; [| lia]. exfalso. apply Hc. simpl.
      apply holder_eqb_eq. auto.
    - unfold changed. simpl. intro H. rewrite H in E. 
      destruct (holder s g b) as [[[x m] j] |]; simpl in E; try discriminate. rewrite !Nat.eqb_refl in E. discriminate.
  Qed.

  Lemma outranks_trans g i h x : gpu p i = g -> outranks i h -> outranks h x -> outranks i x.
  Proof.
    intros Hg [Hh [_ [Hs1 Hl1]]] [Hx [_ [Hs2 Hl2]]]. repeat split; auto.
    - intros ->. lia.
    - apply same_intro. apply (same_uses i h); auto. apply (same_uses h x); auto.
      rewrite (same_gpu_eq h x); auto. apply same_gpu_eq. auto.
    - lia.
  Qed.

  (** While window (i, k, j) is open, an update is its own, or in flight since before its begin, or that of a task
      that outranks i. *)
  Lemma update_of_open_window i k j t c : task i -> ph i k t = Win j -> update s (gpu p i) t = Some c ->
    c = opens s i k j \/ c = in_flight (gpu p i) (opens s i k j) \/
    exists x m, owner (gpu p i) c = Some (x, m) /\ outranks i x.
  Proof.
    intros Hi Hp Hu. set (g := gpu p i) in *. set (b := opens s i k j) in *.
    destruct (update_cause _ _ M g t c Hu) as [Hct Hc].
    pose proof (window_open _ _ _ _ Hi Hp) as Hw. fold b in Hw.
    destruct (lt_eq_lt_dec c b) as [[L | E] | G]; auto.
    - (* a change before the begin *)
      right. pose proof (last_change_last g b c Hc ltac:(lia)) as Hle.
      pose proof (last_change_changed g b c Hc ltac:(lia)) as Hlc.
      destruct (le_lt_dec (last_change g b) c) as [Hge | Hlt].
      2: { left. apply (in_flight_spec g b c t); auto; lia. }
      right. assert (Ec : last_change g b = c) by lia.
      assert (Hpb : ph i k b = Win j) by (apply (open_window _ _ _ b _ Hi Hp); unfold b in *; lia).
      destruct (holder_or_outranked _ _ _ _ Hi Hpb) as [n [m [jn [Hn Hr]]]]. fold g in Hn.
      assert (Hnc : holder s g c = Some (n, m, jn)). { rewrite <- Hn. apply last_change_same. lia. }
      destruct (holder_facts _ _ _ _ _ Hnc) as [Htn [Hgn Hpn]].
      destruct Hr as [[-> [-> ->]] | Hr].
      { apply window_open in Hpn; auto. unfold b in *. lia. }
      destruct (Nat.eq_dec (opens s n m jn) c) as [Eo | No].
      { exists n, m. split; auto. apply (owner_begin _ _ _ _ jn); auto. }
      destruct (change_cause g c Hc) as [[n' [m' [j' [Hn' Ho']]]] | [o [m' [j' [a [-> [Ha Hcl]]]]]]].
      { congruence. }
      exists o, m'. split.
      { unfold owner. rewrite Hnc. destruct (Nat.eqb (opens s n m jn) (S a)) eqn:Eq.
        apply Nat.eqb_eq in Eq. congruence. simpl. rewrite Ha. reflexivity. }
      pose proof (window_open _ _ _ _ Htn Hpn) as Hwn.
      assert (Hpa : ph n m a = Win jn) by (apply (open_window _ _ _ a _ Htn Hpn); lia).
      destruct (holder_or_outranked _ _ _ _ Htn Hpa) as [o' [m2 [j2 [Ho' Hr']]]]. rewrite Hgn, Ha in Ho'.
      injection Ho' as <- <- <-. destruct Hr' as [[-> [-> ->]] | Hr'].
      { lia. }
      eapply outranks_trans; eauto.
    - (* a change while it is open *)
      right. right. assert (Hpc : ph i k c = Win j) by (apply (open_window _ _ _ c _ Hi Hp); unfold b in *; lia).
      destruct (holder_or_outranked _ _ _ _ Hi Hpc) as [n [m [jn [Hn Hr]]]]. fold g in Hn.
      destruct (Nat.eq_dec (opens s n m jn) c) as [Eo | No].
      { exists n, m. split. apply (owner_begin _ _ _ _ jn); auto. destruct Hr as [[-> [-> ->]] | Hr]; auto.
        unfold b in *. lia. }
      destruct (change_cause g c Hc) as [[n' [m' [j' [Hn' Ho']]]] | [o [m' [j' [a [-> [Ha Hcl]]]]]]].
      { congruence. }
      exists o, m'. split.
      { unfold owner. rewrite Hn. destruct (Nat.eqb (opens s n m jn) (S a)) eqn:Eq.
        apply Nat.eqb_eq in Eq. congruence. simpl. rewrite Ha. reflexivity. }
      assert (Hpa : ph i k a = Win j) by (apply (open_window _ _ _ a _ Hi Hp); unfold b in *; lia).
      destruct (holder_or_outranked _ _ _ _ Hi Hpa) as [o' [m2 [j2 [Ho' Hr']]]]. fold g in Ho'. rewrite Ha in Ho'.
      injection Ho' as <- <- <-. destruct Hr' as [[-> [-> ->]] | Hr']; auto. unfold b in *. lia.
  Qed.
End Proof.
