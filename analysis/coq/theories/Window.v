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

(** What the checker checks, in natural numbers: what every analysis needs of a set, ... *)
Record well_formed (p : set nat) : Prop := {
  T_positive : forall i, i < count p -> 0 < T p i;
  D_at_most_T : forall i, i < count p -> D p i <= T p i;
  R_at_most_D : forall i, i < count p -> R p i <= D p i;
  R_contains : forall i, i < count p -> J p i + (C p i + (n_Gm p i + n_Ge p i)) + n_updates p i + B p i <= R p i;
  no_blocking : forall i, i < count p -> length (segs p i) = 0 -> B p i = 0;
  cpu_distinct : forall i h, i < count p -> h < count p -> i <> h -> core p i = core p h -> prio p i <> prio p h;
  gpu_distinct : forall i h, i < count p -> h < count p -> i <> h -> n_same p i h = true ->
    gprio p i <> gprio p h;
  same_order : forall i h, i < count p -> h < count p -> i <> h -> core p i = core p h -> n_same p i h = true ->
    ((prio p i < prio p h)%N <-> (gprio p i < gprio p h)%N) }.

(** ... and the recurrences of theorem 1. *)
Record valid (p : set nat) : Prop := {
  valid_set :> well_formed p;
  R_above_rhs : forall i, i < count p -> n_rhs p i <= R p i;
  F_above_rhs : forall i s, i < count p -> In s (segs p i) ->
    R p i <= length_bound s \/ n_window_rhs p i s (length_bound s) <= length_bound s }.

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
  Hypothesis V : well_formed p.
  Hypothesis M : gpus_obey p s.

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

  (** The job whose window begins (it holds the GPU then) or ends (it held the GPU until then) at c, if any. *)
  Definition owner g c : option (nat * nat) :=
    let old := match before s g c with
      | Some (o, m, j) => if Nat.eqb (closes s o m j) c then Some (o, m) else None
      | None => None
      end in
    match holder s g c with
    | Some (n, m, j) => if Nat.eqb (opens s n m j) c then Some (n, m) else old
    | None => old
    end.

  Lemma owner_begin g c n m j : holder s g c = Some (n, m, j) -> opens s n m j = c -> owner g c = Some (n, m).
  Proof. intros H E. unfold owner. rewrite H, E, Nat.eqb_refl. reflexivity. Qed.

  (** The window of the owner begins or ends at c. *)
  Lemma owner_window g c x m : owner g c = Some (x, m) ->
    task x /\ gpu p x = g /\ exists j, j < segments p x /\
      ((opens s x m j = c /\ ph x m c = Win j) \/ (closes s x m j = c /\ exists b, c = S b /\ ph x m b = Win j)).
  Proof.
    assert (Hold : match before s g c with
        | Some (o, m, j) => if Nat.eqb (closes s o m j) c then Some (o, m) else None | None => None end = Some (x, m) ->
      task x /\ gpu p x = g /\ exists j, j < segments p x /\
      ((opens s x m j = c /\ ph x m c = Win j) \/ (closes s x m j = c /\ exists b, c = S b /\ ph x m b = Win j))).
    { unfold before. destruct c as [| b]; try discriminate.
      destruct (holder s g b) as [[[o m'] j'] |] eqn:E; try discriminate.
      destruct (Nat.eqb (closes s o m' j') (S b)) eqn:Ec; try discriminate. apply Nat.eqb_eq in Ec.
      intro H. injection H as -> ->. destruct (holder_facts _ _ _ _ _ E) as [Ht [Hg Hp]]. repeat split; auto.
      exists j'. split. eapply window_uses; eauto. right. split; auto. exists b. auto. }
    unfold owner. destruct (holder s g c) as [[[n m'] j'] |] eqn:E; auto.
    destruct (Nat.eqb (opens s n m' j') c) eqn:Eo; auto. apply Nat.eqb_eq in Eo.
    intro H. injection H as -> ->. destruct (holder_facts _ _ _ _ _ E) as [Ht [Hg Hp]]. repeat split; auto.
    exists j'. split. eapply window_uses; eauto. left. auto.
  Qed.

  (** ** Lemma 3 (updates) *)

  Lemma last_change_le g b : last_change s g b <= b.
  Proof. induction b; simpl; auto. destruct (changes s g (S b)); lia. Qed.

  Lemma last_change_last g b c : c = 0 \/ changes s g c = true -> c <= b -> c <= last_change s g b.
  Proof.
    intro Hc. induction b; simpl; intro Hb. lia. destruct (changes s g (S b)) eqn:E; auto.
    apply IHb. destruct (Nat.eq_dec c (S b)) as [-> |]; [| lia]. destruct Hc as [|]; congruence.
  Qed.

  Lemma last_change_changes g b : last_change s g b = 0 \/ changes s g (last_change s g b) = true.
  Proof. induction b; simpl; auto. destruct (changes s g (S b)) eqn:E; auto. Qed.

  (** What is in progress at the last change of the desired set before b or at b, if it is still in progress at b. *)
  Definition in_flight g b : nat :=
    match last_change s g b with 0 => 0 | S a => match update s g a with Some c => c | None => 0 end end.

  (** Seen from b on, an update for a change before b or at b is the one that was in progress, or the one for all
      changes up to b, also those under A. *)
  Lemma update_of_before g b c t : update s g t = Some c -> c <= b -> b <= t ->
    c = last_change s g b \/ c = in_flight g b.
  Proof.
    intros Hu Hcb Hb. destruct (update_cause _ _ M g t c Hu) as [_ Hc].
    pose proof (last_change_last g b c Hc Hcb) as Hle. pose proof (last_change_le g b) as Hlb.
    destruct (Nat.eq_dec c (last_change s g b)) as [| Hne]; auto. right. unfold in_flight.
    destruct (last_change_changes g b) as [H0 | Hl]. lia.
    pose proof (update_serial _ _ M g t c (last_change s g b) Hu ltac:(lia) Hl) as H.
    destruct (last_change s g b) as [| a]. lia. simpl in H. rewrite H. reflexivity.
  Qed.

  (** While a window is open the desired set changes with the holder. *)
  Lemma change_in_window i k j c : task i -> ph i k c = Win j -> changes s (gpu p i) c = true -> changed s (gpu p i) c.
  Proof.
    intros Hi Hp Hc. destruct (desired_changes _ _ M _ _ Hc) as [H | [_ H]]; auto. exfalso.
    destruct (holder_or_outranked _ _ _ _ Hi Hp) as [n [m [jn [Hn _]]]]. congruence.
  Qed.

  (** A change after the first instant of an interval in which window (i, k, j) is open is the begin or the end of a
      window that outranks it. *)
  Lemma change_owner i k j c : task i -> ph i k c = Win j -> opens s i k j < c -> changes s (gpu p i) c = true ->
    exists x m, owner (gpu p i) c = Some (x, m) /\ outranks i x.
  Proof.
    intros Hi Hp Ho Hch. set (g := gpu p i) in *.
    pose proof (change_in_window i k j c Hi Hp Hch) as Hc. fold g in Hc.
    pose proof (window_open _ _ _ _ Hi Hp) as Hw.
    destruct (holder_or_outranked _ _ _ _ Hi Hp) as [n [m [jn [Hn Hr]]]]. fold g in Hn.
    destruct (Nat.eq_dec (opens s n m jn) c) as [Eo | No].
    { exists n, m. split. apply (owner_begin _ _ _ _ jn); auto. destruct Hr as [[-> [-> ->]] | Hr]; auto. lia. }
    destruct (change_cause g c Hc) as [[n' [m' [j' [Hn' Ho']]]] | [o [m' [j' [a [-> [Ha Hcl]]]]]]].
    { congruence. }
    exists o, m'. split.
    { unfold owner. rewrite Hn. destruct (Nat.eqb (opens s n m jn) (S a)) eqn:Eq.
      apply Nat.eqb_eq in Eq. congruence. simpl. rewrite Ha, Hcl, Nat.eqb_refl. reflexivity. }
    assert (Hpa : ph i k a = Win j) by (apply (open_window _ _ _ a _ Hi Hp); lia).
    destruct (holder_or_outranked _ _ _ _ Hi Hpa) as [o' [m2 [j2 [Ho' Hr']]]]. fold g in Ho'. rewrite Ha in Ho'.
    injection Ho' as <- <- <-. destruct Hr' as [[-> [-> ->]] | Hr']; auto. lia.
  Qed.

  (** While window (i, k, j) is open, an update is the one for all changes up to its begin, or in flight since before,
      or
      that of a task that outranks i. *)
  Lemma update_of_open_window i k j t c : task i -> ph i k t = Win j -> update s (gpu p i) t = Some c ->
    c = last_change s (gpu p i) (opens s i k j) \/ c = in_flight (gpu p i) (opens s i k j) \/
    exists x m, owner (gpu p i) c = Some (x, m) /\ outranks i x.
  Proof.
    intros Hi Hp Hu. pose proof (window_open _ _ _ _ Hi Hp) as Hw.
    destruct (update_cause _ _ M _ _ _ Hu) as [Hct Hc].
    destruct (le_lt_dec c (opens s i k j)) as [Hle | Hgt].
    - destruct (update_of_before _ _ _ _ Hu Hle ltac:(lia)); auto.
    - right. right. apply (change_owner i k j c); auto.
      apply (open_window _ _ _ c _ Hi Hp). lia. destruct Hc as [-> |]; auto. lia.
  Qed.

  (** Lemma 3 as window.md states it: the updates in an interval [a, e) in which window (i, k, j) is open measure at
      most
      2 eps, plus 2 eps for each window of higher priority that is open at some time of it. *)
  Theorem update_measure i k j a e (higher : list (nat * nat * nat)) : task i -> a < e ->
    (forall t, a <= t < e -> ph i k t = Win j) ->
    (forall x m j' t, outranks i x -> a <= t < e -> ph x m t = Win j' -> In (x, m, j') higher) ->
    cnt (fun t => negb (quiet s (gpu p i) t)) a e <= 2 * eps p i + length higher * (2 * eps p i).
  Proof.
    intros Hi Hae Hopen Hall. set (g := gpu p i). pose proof (Hopen a ltac:(lia)) as Ha.
    pose proof (window_open _ _ _ _ Hi Ha) as Hwa. destruct (window_uses _ _ _ _ Hi Ha) as [Huse _].
    assert (Hlimit : forall c, cnt (update_is s g c) a e <= eps p i).
    { intro c. eapply Nat.le_trans. apply (cnt_within _ a e 0 e); lia.
      apply (update_length _ _ M i); auto. apply uses_segments; auto. }
    set (served := fun x : nat * nat * nat => let '(h, m, j') := x in
      fun t => update_is s g (opens s h m j') t || update_is s g (closes s h m j') t).
    eapply Nat.le_trans.
    - apply (cnt_mono _ (fun t => (update_is s g (last_change s g a) t || update_is s g (in_flight g a) t) ||
        existsb (fun Q => Q t) (map served higher))).
      intros t Ht Hq. unfold quiet in Hq. destruct (update s g t) as [c |] eqn:Hu; try discriminate.
      assert (Hn : forall c', c = c' -> update_is s g c' t = true).
      { intros c' <-. unfold update_is. rewrite Hu. apply Nat.eqb_refl. }
      destruct (update_cause _ _ M _ _ _ Hu) as [Hct Hc]. destruct (le_lt_dec c a) as [Hle | Hgt].
      { destruct (update_of_before g a c t Hu Hle ltac:(lia)) as [H | H]; rewrite (Hn _ H), ?orb_true_r; reflexivity. }
      destruct (change_owner i k j c Hi (Hopen c ltac:(lia)) ltac:(lia)) as [x [m [Ho Hr]]].
      { destruct Hc as [-> |]; auto. lia. }
      apply orb_true_iff. right. apply existsb_exists.
      destruct (owner_window _ _ _ _ Ho) as [_ [_ [j' [_ [[He Hp] | [He [b [-> Hp]]]]]]]].
      + exists (served (x, m, j')). split. apply in_map. apply (Hall x m j' c); auto. lia.
        unfold served. rewrite (Hn _ (eq_sym He)). reflexivity.
      + exists (served (x, m, j')). split. apply in_map. apply (Hall x m j' b); auto. lia.
        unfold served. rewrite (Hn _ (eq_sym He)). apply orb_true_r.
    - eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono.
      + eapply Nat.le_trans. apply cnt_or. pose proof (Hlimit (last_change s g a)).
        pose proof (Hlimit (in_flight g a)). lia.
      + eapply Nat.le_trans. apply cnt_any. rewrite total_map, <- total_const. apply total_mono.
        intros [[h m] j'] _. unfold served. eapply Nat.le_trans. apply cnt_or.
        pose proof (Hlimit (opens s h m j')). pose proof (Hlimit (closes s h m j')). lia.
  Qed.

  (** ... and the update for the end of a window ends at most 2 eps after it. *)
  Theorem update_after_end x m j t : task x -> n_uses p x = true -> update s (gpu p x) t = Some (closes s x m j) ->
    t < closes s x m j + 2 * eps p x.
  Proof. intros Hx Hu H. apply (update_soon _ _ M x (gpu p x)); auto. apply uses_segments. auto. Qed.

  (** ** Work of a job *)

  Lemma runs_spec h m t : runs p s h m t = true <-> exec s (core p h) t = Some (h, m).
  Proof.
    unfold runs. destruct (exec s (core p h) t) as [[x y] |].
    - rewrite andb_true_iff, !Nat.eqb_eq. split. intros [-> ->]; auto. intro E; injection E; auto.
    - split; discriminate.
  Qed.

  Lemma in_window_spec h m j t : in_window s h m j t = true <-> ph h m t = Win j.
  Proof.
    unfold in_window. destruct (ph h m t); try (split; congruence). rewrite Nat.eqb_eq.
    split; congruence.
  Qed.

  Lemma holds_spec h m j t : holds p s h m j t = true <-> holder s (gpu p h) t = Some (h, m, j).
  Proof.
    unfold holds. destruct (holder s (gpu p h) t) as [[[x y] z] |].
    - rewrite !andb_true_iff, !Nat.eqb_eq. split. intros [[-> ->] ->]; auto. intro E; injection E; auto.
    - split; discriminate.
  Qed.

  Lemma quiet_spec g t : quiet s g t = true <-> update s g t = None.
  Proof. unfold quiet. destruct (update s g t); split; congruence. Qed.

  Lemma cpu_limit h m a b : task h -> cnt (cpu_unit p s h m) a b <= C p h.
  Proof.
    intro Hh. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply cnt_limit. intros t _ H. apply (cpu_left _ _ M); auto.
    unfold cpu_unit, in_cpu in H. apply andb_true_iff in H. destruct H as [_ H].
    destruct (ph h m t); congruence.
  Qed.

  Lemma blocked_limit h m a b : task h -> cnt (in_blocked s h m) a b <= B p h.
  Proof.
    intro Hh. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply cnt_limit. intros t _ H. apply (blocking_left _ _ M); auto.
    unfold in_blocked in H. destruct (ph h m t); congruence.
  Qed.

  Lemma host_limit h m j a b : task h -> cnt (host_unit p s h m j) a b <= host (segment_at p h j).
  Proof.
    intro Hh. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply cnt_limit. intros t _ H. unfold host_unit in H. apply andb_true_iff in H. destruct H as [Hr Hw].
    apply runs_spec in Hr. apply in_window_spec in Hw.
    destruct (exec_wants _ _ M _ _ _ _ Hr) as [_ [_ [Hc | [j' [Hj Hrd]]]]]. congruence.
    apply (host_left _ _ M); auto.
  Qed.

  Lemma device_limit h m j a b : task h -> cnt (device_unit p s h m j) a b <= device (segment_at p h j).
  Proof.
    intro Hh. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply cnt_limit. intros t _ H. unfold device_unit in H. rewrite !andb_true_iff in H. destruct H as [[Hr Hq] Hd].
    apply holds_spec in Hr. destruct (holder_facts _ _ _ _ _ Hr) as [_ [_ Hw]].
    apply (device_left _ _ M); auto.
  Qed.

  (** Charges: the job of h to which an instant is charged, if any. *)
  Definition run_job h t : option nat :=
    match exec s (core p h) t with Some (x, m) => if Nat.eqb x h then Some m else None | None => None end.
  Definition device_job h t : option nat :=
    match holder s (gpu p h) t with
    | Some (x, m, j) => if Nat.eqb x h && quiet s (gpu p h) t && device_ready s h m t then Some m else None
    | None => None
    end.
  Definition held_run_job h t : option nat :=
    match holder s (gpu p h) t with
    | Some (x, m, j) => if Nat.eqb x h && runs p s h m t then Some m else None
    | None => None
    end.
  Definition update_job h t : option nat :=
    match update s (gpu p h) t with
    | Some c => match owner (gpu p h) c with Some (x, m) => if Nat.eqb x h then Some m else None | None => None end
    | None => None
    end.

  Lemma run_job_spec h m t : run_job h t = Some m <-> exec s (core p h) t = Some (h, m).
  Proof.
    unfold run_job. destruct (exec s (core p h) t) as [[x y] |]; [| split; discriminate].
    destruct (Nat.eqb x h) eqn:E.
    - apply Nat.eqb_eq in E. subst. split; congruence.
    - apply Nat.eqb_neq in E. split; congruence.
  Qed.

  Lemma device_job_spec h m t : device_job h t = Some m ->
    exists j, holder s (gpu p h) t = Some (h, m, j) /\ device_unit p s h m j t = true.
  Proof.
    unfold device_job. destruct (holder s (gpu p h) t) as [[[x y] j] |] eqn:E; try discriminate.
    destruct (Nat.eqb x h && quiet s (gpu p h) t && device_ready s h y t) eqn:Ec; try discriminate.
    rewrite !andb_true_iff, Nat.eqb_eq in Ec. destruct Ec as [[-> Hq] Hd]. intro H. injection H as ->.
    exists j. split; auto. unfold device_unit. rewrite Hq, Hd. rewrite !andb_true_r. apply holds_spec. auto.
  Qed.

  Lemma held_run_job_spec h m t : held_run_job h t = Some m ->
    exists j, holder s (gpu p h) t = Some (h, m, j) /\ runs p s h m t = true.
  Proof.
    unfold held_run_job. destruct (holder s (gpu p h) t) as [[[x y] j] |] eqn:E; try discriminate.
    destruct (Nat.eqb x h && runs p s h y t) eqn:Ec; try discriminate.
    rewrite !andb_true_iff, Nat.eqb_eq in Ec. destruct Ec as [-> Hq]. intro H. injection H as ->.
    exists j. auto.
  Qed.

  Lemma update_job_spec h m t : update_job h t = Some m ->
    exists c, update s (gpu p h) t = Some c /\ owner (gpu p h) c = Some (h, m).
  Proof.
    unfold update_job. destruct (update s (gpu p h) t) as [c |]; try discriminate.
    destruct (owner (gpu p h) c) as [[x y] |] eqn:Eo; try discriminate.
    destruct (Nat.eqb x h) eqn:E; try discriminate. apply Nat.eqb_eq in E. subst. intro H. injection H as ->.
    exists c. auto.
  Qed.

  Lemma is_job_spec f m t : is_job f m t = true <-> f t = Some m.
  Proof.
    unfold is_job. destruct (f t); [| split; discriminate]. rewrite Nat.eqb_eq. split; congruence.
  Qed.

  Lemma host_total h m a b : task h ->
    total (seq 0 (segments p h)) (fun j => cnt (host_unit p s h m j) a b) <= n_Gm p h.
  Proof.
    intro Hh. eapply Nat.le_trans. apply total_mono. intros. apply host_limit; auto.
    unfold segment_at, segments. rewrite (total_nth (segs p h) no_segment host). unfold Gm, sum, total. lia.
  Qed.

  Lemma device_total h m a b : task h ->
    total (seq 0 (segments p h)) (fun j => cnt (device_unit p s h m j) a b) <= n_Ge p h.
  Proof.
    intro Hh. eapply Nat.le_trans. apply total_mono. intros. apply device_limit; auto.
    unfold segment_at, segments. rewrite (total_nth (segs p h) no_segment device). unfold Ge, sum, total. lia.
  Qed.

  Lemma run_count h m a b : task h -> cnt (is_job (run_job h) m) a b <= n_cpu p h.
  Proof.
    intro Hh. unfold cpu_work.
    eapply Nat.le_trans.
    - apply (cnt_mono _ (fun t => cpu_unit p s h m t ||
        existsb (fun Q => Q t) (map (host_unit p s h m) (seq 0 (segments p h))))).
      intros t _ H. apply is_job_spec, run_job_spec in H. assert (Hr : runs p s h m t = true) by (apply runs_spec; auto).
      destruct (exec_wants _ _ M _ _ _ _ H) as [_ [_ [Hc | [j [Hj _]]]]].
      + unfold cpu_unit, in_cpu. rewrite Hr, Hc. reflexivity.
      + apply orb_true_iff. right. apply existsb_exists. exists (host_unit p s h m j). split.
        apply in_map, in_seq. destruct (window_uses _ _ _ _ Hh Hj). lia.
        unfold host_unit. rewrite Hr. simpl. apply in_window_spec. auto.
    - eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono. apply cpu_limit; auto.
      eapply Nat.le_trans. apply cnt_any. rewrite total_map. apply host_total; auto.
  Qed.

  Lemma device_count h m a b : task h -> cnt (is_job (device_job h) m) a b <= n_Ge p h.
  Proof.
    intro Hh. eapply Nat.le_trans; [| apply (device_total h m a b Hh)].
    apply cnt_list. intros t _ H. apply is_job_spec, device_job_spec in H. destruct H as [j [Hj Hu]].
    exists j. split; auto. apply in_seq. destruct (holder_facts _ _ _ _ _ Hj) as [_ [_ Hw]].
    destruct (window_uses _ _ _ _ Hh Hw). lia.
  Qed.

  Lemma held_run_count h m a b : task h -> cnt (is_job (held_run_job h) m) a b <= n_Gm p h.
  Proof.
    intro Hh. eapply Nat.le_trans; [| apply (host_total h m a b Hh)].
    apply cnt_list. intros t _ H. apply is_job_spec, held_run_job_spec in H. destruct H as [j [Hj Hu]].
    exists j. destruct (holder_facts _ _ _ _ _ Hj) as [_ [_ Hw]]. split.
    apply in_seq. destruct (window_uses _ _ _ _ Hh Hw). lia.
    unfold host_unit. rewrite Hu. simpl. apply in_window_spec. auto.
  Qed.

  Lemma update_is_limit h c a b : task h -> n_uses p h = true -> cnt (update_is s (gpu p h) c) a b <= eps p h.
  Proof.
    intros Hh Hu. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply (update_length _ _ M h); auto. apply uses_segments. auto.
  Qed.

  Lemma update_count h m a b : task h -> cnt (is_job (update_job h) m) a b <= n_updates p h.
  Proof.
    intro Hh. unfold updates, eta, ident, twice_eps.
    eapply Nat.le_trans.
    - apply (cnt_list _ (seq 0 (segments p h)) (fun j t => update_is s (gpu p h) (opens s h m j) t
        || update_is s (gpu p h) (closes s h m j) t)).
      intros t _ H. apply is_job_spec, update_job_spec in H. destruct H as [c [Hu Ho]].
      destruct (owner_window _ _ _ _ Ho) as [_ [_ [j [Hj Hcase]]]]. exists j. split. apply in_seq. lia.
      unfold update_is. rewrite Hu. apply orb_true_iff. rewrite !Nat.eqb_eq. intuition.
    - eapply Nat.le_trans.
      + apply (total_mono _ _ (fun _ => eps p h + eps p h)). intros j Hj. apply in_seq in Hj.
        assert (n_uses p h = true).
        { unfold uses, eta. unfold segments in Hj. destruct (length (segs p h)); auto. lia. }
        eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono; apply update_is_limit; auto.
      + rewrite total_const, seq_length. unfold segments. lia.
  Qed.

  (** ** Bounds that hold up to an instant *)

  (** Before te no job has exceeded its bound. *)
  Definition in_time te := forall h m t, task h -> t < te -> pending s h m t -> t < arr h m + R p h.

  Lemma in_tasks x : In x (tasks nat p) <-> task x.
  Proof. unfold tasks. rewrite in_seq. lia. Qed.

  Lemma not_uses h : n_uses p h = false -> segs p h = [].
  Proof. unfold uses, eta. destruct (segs p h); simpl; congruence. Qed.

  Lemma whole_at_most_R h : task h -> n_whole p h <= R p h.
  Proof.
    intro Hh. pose proof (R_contains _ V h Hh) as H. unfold whole, hold. lia.
  Qed.

  Lemma R_at_most_T h : task h -> R p h <= T p h.
  Proof. intro Hh. pose proof (R_at_most_D _ V h Hh). pose proof (D_at_most_T _ V h Hh). lia. Qed.

  Lemma cost_at_most_R g h : task h -> n_cost p g h <= R p h.
  Proof.
    intro Hh. pose proof (whole_at_most_R h Hh) as H. unfold whole, hold in H. unfold stop_cost, cpu_work.
    destruct (n_uses p h && negb (N.eqb (gpu p h) g)); lia.
  Qed.

  Lemma above_spec i h : n_above p i h = true <-> core p h = core p i /\ (prio p i < prio p h)%N.
  Proof. unfold above. rewrite andb_true_iff, N.eqb_eq, N.ltb_lt. tauto. Qed.

  Lemma in_hpp x c : In c (n_hpp p x) <-> task c /\ n_above p x c = true.
  Proof. unfold hpp. rewrite filter_In, in_tasks. tauto. Qed.

  Lemma in_rem i x : In x (n_rem p i) -> task x /\ gpu p x = gpu p i /\ n_uses p i = true.
  Proof.
    unfold rem. rewrite filter_In, in_tasks. unfold remote. rewrite !andb_true_iff. intros [H [[_ Hs] _]].
    split; auto. split. apply same_gpu_eq; auto. apply (same_uses i x); auto.
  Qed.

  Lemma spaced h : task h -> forall m, arr h m + T p h <= arr h (S m).
  Proof. intros Hh m. apply (sporadic _ _ M); auto. Qed.

  Lemma outranks_local i x : task i -> outranks i x -> core p x = core p i -> In x (n_hpp p i).
  Proof.
    intros Hi [Hx [Hne [Hs Hl]]] Hc. apply in_hpp. split; auto. apply above_spec. split; auto.
    apply (same_order _ V i x); auto.
  Qed.

  Lemma outranks_remote i x : outranks i x -> core p x <> core p i -> In x (n_rem p i).
  Proof.
    intros [Hx [Hne [Hs Hl]]] Hc. unfold rem. apply filter_In. split. apply in_tasks. auto.
    unfold remote. rewrite Hs. apply N.eqb_neq in Hc. rewrite Hc. apply N.ltb_lt in Hl. rewrite Hl. reflexivity.
  Qed.

  Definition windows_in_time te := forall h m j t, task h -> t < te -> ph h m t = Win j ->
    t < opens s h m j + length_bound (segment_at p h j).
  Definition kept te := in_time te /\ windows_in_time te.

  Section Until.
    Variable te : nat.
    Hypothesis K : in_time te.

    Lemma phase_in h m t : task h -> t < te -> ph h m t <> Idle -> arr h m <= t /\ t < arr h m + R p h.
    Proof.
      intros Hh Ht Hp. apply phase_pending in Hp; auto. split.
      - destruct Hp as [Hr _]. pose proof (released _ _ M h m Hh). lia.
      - apply K; auto.
    Qed.

    Lemma run_in h m t : t < te -> run_job h t = Some m -> arr h m <= t < arr h m + R p h.
    Proof.
      intros Ht H. apply run_job_spec in H. destruct (exec_wants _ _ M _ _ _ _ H) as [Hh [_ Hw]].
      apply wants_phase in Hw. destruct (phase_in h m t Hh Ht Hw). lia.
    Qed.

    Lemma held_in h m j t : t < te -> holder s (gpu p h) t = Some (h, m, j) -> arr h m <= t < arr h m + R p h.
    Proof.
      intros Ht H. destruct (holder_facts _ _ _ _ _ H) as [Hh [_ Hp]].
      destruct (phase_in h m t Hh Ht ltac:(congruence)). lia.
    Qed.

    (** The update after a window may have to wait for one in progress. *)
    Definition late h := R p h + (eps p h + eps p h).

    Lemma update_in h m t : t < te -> update_job h t = Some m -> arr h m <= t < arr h m + late h.
    Proof.
      intros Ht H. apply update_job_spec in H. destruct H as [c [Hu Ho]].
      destruct (update_cause _ _ M _ _ _ Hu) as [Hct _].
      destruct (owner_window _ _ _ _ Ho) as [Hh [_ [j [Hj Hcase]]]].
      assert (Huse : n_uses p h = true).
      { unfold uses, eta. unfold segments in Hj. destruct (length (segs p h)); auto. lia. }
      pose proof (update_soon _ _ M h _ t c Hh (uses_segments h Huse) eq_refl Hu) as Hs.
      unfold late.
      destruct Hcase as [[Ho' Hp] | [Ho' [b [-> Hp]]]].
      - destruct (phase_in h m c Hh ltac:(lia) ltac:(congruence)). lia.
      - destruct (phase_in h m b Hh ltac:(lia) ltac:(congruence)). lia.
    Qed.

    Definition whole_job h t :=
      match run_job h t with
      | Some m => Some m
      | None => match device_job h t with Some m => Some m | None => update_job h t end
      end.

    Definition local_job i h := if n_same p i h then whole_job h else run_job h.

    Lemma whole_in h m t : t < te -> whole_job h t = Some m -> arr h m <= t < arr h m + late h.
    Proof.
      intros Ht H. unfold whole_job in H. destruct (run_job h t) eqn:E1.
      { injection H as ->. destruct (run_in h m t Ht E1). unfold late. lia. }
      destruct (device_job h t) eqn:E2. injection H as ->.
      apply device_job_spec in E2. destruct E2 as [j [Hj _]]. destruct (held_in _ _ _ _ Ht Hj). unfold late. lia.
      apply update_in; auto.
    Qed.

    Lemma whole_count h m a b : task h -> cnt (is_job (whole_job h) m) a b <= n_whole p h.
    Proof.
      intro Hh. unfold whole, hold. pose proof (run_count h m a b Hh) as H1.
      pose proof (device_count h m a b Hh) as H2. pose proof (update_count h m a b Hh) as H3. unfold cpu_work in H1.
      eapply Nat.le_trans.
      - apply (cnt_mono _ (fun t => is_job (run_job h) m t || (is_job (device_job h) m t || is_job (update_job h) m t))).
        intros t _ H. apply is_job_spec in H. unfold whole_job in H. rewrite !orb_true_iff, !is_job_spec.
        destruct (run_job h t). auto. destruct (device_job h t); auto.
      - eapply Nat.le_trans. apply cnt_or.
        eapply Nat.le_trans. apply Nat.add_le_mono_l. apply cnt_or. lia.
    Qed.

    (** (a), (b), (c) *)
    Lemma local_bound i h t0 : In h (n_hpp p i) ->
      (forall m t, t0 <= t < te -> segments p h = 0 -> exec s (core p h) t = Some (h, m) -> t0 <= release s h m) ->
      cnt (is_some (local_job i h)) t0 te <= n_local p i h (te - t0).
    Proof.
      intros Hin Hstart. unfold hpp in Hin. apply filter_In in Hin. destruct Hin as [Hin _]. apply in_tasks in Hin.
      pose proof (T_positive _ V h Hin) as HT. pose proof (R_at_most_T h Hin) as HRT.
      pose proof (whole_at_most_R h Hin) as HW.
      unfold local, local_job. destruct (n_uses p h) eqn:Hu.
      - destruct (n_same p i h) eqn:Hs.
        + eapply Nat.le_trans.
          * apply (work_at_rate_one (arr h) (T p h) HT (spaced h Hin) (whole_job h) t0 te (late h) (n_whole p h)); try (unfold late; lia).
            intros. apply whole_in; auto. lia. intros. apply whole_count. auto.
          * apply Nat.mul_le_mono_r. apply ceil_nat_mono. unfold late, twice_eps. lia.
        + eapply Nat.le_trans.
          * apply (work_at_rate_one (arr h) (T p h) HT (spaced h Hin) (run_job h) t0 te (R p h) (n_cpu p h)); try lia.
            unfold whole, hold in HW. unfold cpu_work. lia.
            intros. apply run_in; auto. lia. intros. apply run_count. auto.
          * apply Nat.mul_le_mono_l. lia.
      - assert (Hs : n_same p i h = false). { unfold same_gpu. rewrite Hu. rewrite andb_false_r. reflexivity. }
        rewrite Hs. pose proof (not_uses h Hu) as Hseg.
        apply (work_without_carry_in (arr h) (T p h) HT (spaced h Hin)).
        + intros t m Ht Hr. split. apply run_in in Hr; lia.
          apply run_job_spec in Hr. assert (segments p h = 0) by (unfold segments; rewrite Hseg; reflexivity).
          pose proof (Hstart m t Ht H Hr). pose proof (released _ _ M h m Hin). lia.
        + intro m. eapply Nat.le_trans. apply run_count; auto. unfold cpu_work, Gm. rewrite Hseg. simpl. lia.
    Qed.

    (** ** Without boost *)

    Hypothesis VW : valid p.
    Hypothesis MW : cores_obey p s.
    (** Before te no window has exceeded its length. *)
    Hypothesis KW : windows_in_time te.

    (** ** Stops: c runs on the core of x while x holds its GPU and no update is in progress *)

    Definition stopped x m c t :=
      match holder s (gpu p x) t with
      | Some (y, m', _) =>
        Nat.eqb y x && Nat.eqb m' m && quiet s (gpu p x) t &&
        match exec s (core p x) t with Some (z, _) => Nat.eqb z c | None => false end
      | None => false
      end.

    Lemma stopped_spec x m c t : stopped x m c t = true <->
      exists j n, holder s (gpu p x) t = Some (x, m, j) /\ update s (gpu p x) t = None /\
        exec s (core p x) t = Some (c, n).
    Proof.
      unfold stopped. destruct (holder s (gpu p x) t) as [[[y m'] j] |]; [| split; [discriminate | intros [? [? [? _]]]; discriminate]].
      rewrite !andb_true_iff, !Nat.eqb_eq, quiet_spec. split.
      - intros [[[-> ->] Hq] He]. destruct (exec s (core p x) t) as [[z n] |]; try discriminate.
        apply Nat.eqb_eq in He. subst. exists j, n. auto.
      - intros [j' [n [H1 [H2 H3]]]]. injection H1 as -> -> _. rewrite H3, Nat.eqb_refl. auto.
    Qed.

    (** What a job of c can stop holders of GPU g below it for: Y. *)
    Lemma cost_count g c f n a b : task c ->
      (forall t, a <= t < b -> f t = Some n -> run_job c t = Some n /\
        exists x m j, holder s g t = Some (x, m, j) /\ n_above p x c = true) ->
      cnt (is_job f n) a b <= n_cost p g c.
    Proof.
      intros Hc Hf.
      assert (Hrun : cnt (is_job f n) a b <= n_cpu p c).
      { eapply Nat.le_trans; [| apply (run_count c n a b Hc)]. apply cnt_mono. intros t Ht H.
        apply is_job_spec in H. apply is_job_spec. apply Hf; auto. }
      unfold stop_cost. destruct (n_uses p c) eqn:Hu; simpl.
      - destruct (N.eqb (gpu p c) g) eqn:Hg; simpl. 2: lia.
        apply N.eqb_eq in Hg. eapply Nat.le_trans; [| apply (cpu_limit c n a b Hc)].
        apply cnt_mono. intros t Ht H. apply is_job_spec in H. destruct (Hf t Ht H) as [Hr [x [m [j [Hx Ha]]]]].
        apply run_job_spec in Hr. unfold cpu_unit. apply andb_true_iff. split. apply runs_spec; auto.
        destruct (exec_wants _ _ M _ _ _ _ Hr) as [_ [_ [Hcpu | [j' [Hj' _]]]]].
        unfold in_cpu. rewrite Hcpu. reflexivity. exfalso.
        destruct (holder_facts _ _ _ _ _ Hx) as [Htx [Hgx Hpx]].
        destruct (holder_or_outranked _ _ _ _ Hc Hj') as [y [m2 [j2 [Hy Hr2]]]]. rewrite Hg, Hx in Hy.
        injection Hy as <- <- <-. apply above_spec in Ha. destruct Ha as [Hcore Hprio].
        destruct Hr2 as [[-> _] | [_ [Hne [Hs Hlt]]]]. lia.
        assert (Hs' : n_same p x c = true).
        { apply same_intro. eapply window_uses; eauto. auto. congruence. }
        assert ((gprio p x < gprio p c)%N). { apply (same_order _ V x c); auto. } lia.
      - unfold cpu_work, Gm in Hrun. rewrite (not_uses c Hu) in Hrun. simpl in Hrun. lia.
    Qed.

    Definition stop_job x m c t := if stopped x m c t then run_job c t else None.

    Lemma stop_job_count x m c n a b : task c -> n_above p x c = true ->
      cnt (is_job (stop_job x m c) n) a b <= n_cost p (gpu p x) c.
    Proof.
      intros Hc Ha. apply cost_count; auto. intros t Ht H. unfold stop_job in H.
      destruct (stopped x m c t) eqn:E; try discriminate. split; auto. apply stopped_spec in E.
      destruct E as [j [n' [Hh _]]]. exists x, m, j. auto.
    Qed.

    Lemma stopped_some x m c a b : n_above p x c = true ->
      cnt (stopped x m c) a b <= cnt (is_some (stop_job x m c)) a b.
    Proof.
      intro Ha. apply cnt_mono. intros t _ H. unfold is_some, stop_job. rewrite H. apply stopped_spec in H.
      destruct H as [j [n [_ [_ He]]]]. apply above_spec in Ha. destruct Ha as [Hcore _]. rewrite <- Hcore in He.
      apply run_job_spec in He. rewrite He. reflexivity.
    Qed.

    Lemma stop_run_in x m c n t : t < te -> stop_job x m c t = Some n -> arr c n <= t < arr c n + R p c.
    Proof.
      intros Ht H. unfold stop_job in H. destruct (stopped x m c t); try discriminate. apply run_in; auto.
    Qed.

    (** Stops by c in an interval, by lemma 2. *)
    Lemma stops_in x m c a b : task c -> n_above p x c = true -> b <= te ->
      cnt (stopped x m c) a b <=
      ceil_nat (b - a + (R p c - n_cost p (gpu p x) c)) (T p c) * n_cost p (gpu p x) c.
    Proof.
      intros Hc Ha Hb. eapply Nat.le_trans. apply stopped_some; auto.
      apply (work_at_rate_one (arr c) (T p c) (T_positive _ V c Hc) (spaced c Hc)).
      - apply cost_at_most_R; auto.
      - intros. apply (stop_run_in x m); auto. lia.
      - intros. apply stop_job_count; auto.
    Qed.

    (** k_hc, first count: all windows of a job lie within its response time. *)
    Lemma stops_of_job x m c a b : task x -> task c -> n_above p x c = true -> b <= te ->
      cnt (stopped x m c) a b <=
      ceil_nat (R p x + (R p c - n_cost p (gpu p x) c)) (T p c) * n_cost p (gpu p x) c.
    Proof.
      intros Hx Hc Ha Hb. eapply Nat.le_trans.
      - apply (cnt_inside _ a b (arr x m) (arr x m + R p x)). intros t Ht H. apply stopped_spec in H.
        destruct H as [j [n [Hh _]]]. eapply held_in; eauto. lia.
      - eapply Nat.le_trans. apply stops_in; auto. lia.
        apply Nat.mul_le_mono_r. apply ceil_nat_mono. lia.
    Qed.

    (** k_hc, second count: window by window. *)
    Lemma stops_of_windows x m c a b : task x -> task c -> n_above p x c = true -> b <= te ->
      cnt (stopped x m c) a b <=
      total (segs p x) (fun g => ceil_nat (length_bound g + stop_jitter nat 0 Nat.add Nat.mul Nat.sub ident p (gpu p x) c)
        (T p c)) * n_cost p (gpu p x) c.
    Proof.
      intros Hx Hc Ha Hb.
      set (F := fun g : segment nat => ceil_nat (length_bound g
        + stop_jitter nat 0 Nat.add Nat.mul Nat.sub ident p (gpu p x) c) (T p c)).
      eapply Nat.le_trans.
      - apply (cnt_list _ (seq 0 (segments p x)) (fun j t => stopped x m c t && in_window s x m j t)).
        intros t Ht H. pose proof H as H'. apply stopped_spec in H'. destruct H' as [j [n [Hh _]]].
        destruct (holder_facts _ _ _ _ _ Hh) as [_ [_ Hw]]. exists j. split.
        apply in_seq. destruct (window_uses _ _ _ _ Hx Hw). lia. rewrite H. apply in_window_spec. auto.
      - rewrite <- (total_nth (segs p x) no_segment F). rewrite Nat.mul_comm, <- total_mul.
        apply total_mono. intros j Hj. apply in_seq in Hj. change (nth j (segs p x) no_segment) with (segment_at p x j).
        rewrite Nat.mul_comm. set (o := opens s x m j). set (l := length_bound (segment_at p x j)).
        assert (Hinside : forall t, a <= t < b -> stopped x m c t && in_window s x m j t = true -> o <= t < o + l).
        { intros t Ht H. apply andb_true_iff in H. destruct H as [_ H]. apply in_window_spec in H. split.
          pose proof (window_open _ _ _ _ Hx H). unfold o. lia. unfold o, l. apply KW; auto. lia. }
        eapply Nat.le_trans. apply (cnt_inside _ a b o (o + l) Hinside).
        eapply Nat.le_trans. apply (cnt_within _ _ _ o (min b (o + l))). lia. lia.
        unfold F, stop_jitter. fold l. destruct (n_uses p c) eqn:Hu.
        + eapply Nat.le_trans. apply (cnt_mono _ (stopped x m c)).
          intros t _ H. apply andb_true_iff in H. tauto.
          eapply Nat.le_trans. apply stops_in; auto. lia. apply Nat.mul_le_mono_r, ceil_nat_mono. lia.
        + set (f := fun t => if in_window s x m j t then stop_job x m c t else None).
          eapply Nat.le_trans. apply (cnt_mono _ (is_some f)).
          { intros t _ H. apply andb_true_iff in H. destruct H as [H Hw]. unfold is_some, f. rewrite Hw.
            unfold stop_job. rewrite H. apply stopped_spec in H. destruct H as [j' [n [_ [_ He]]]].
            apply above_spec in Ha. destruct Ha as [Hcore _]. rewrite <- Hcore in He.
            apply run_job_spec in He. rewrite He. reflexivity. }
          eapply Nat.le_trans.
          apply (work_without_carry_in (arr c) (T p c) (T_positive _ V c Hc) (spaced c Hc) f o (min b (o + l)) (J p c)
            (n_cost p (gpu p x) c)).
          * intros t n Ht Hf. unfold f in Hf. destruct (in_window s x m j t) eqn:Hw; try discriminate.
            apply in_window_spec in Hw. assert (Htte : t < te) by lia. assert (Hin := stop_run_in x m c n t Htte).
            assert (Hin2 : arr c n <= t < arr c n + R p c). { apply Hin. auto. } split. lia.
            unfold stop_job in Hf. destruct (stopped x m c t); try discriminate. apply run_job_spec in Hf.
            destruct (exec_wants _ _ M _ _ _ _ Hf) as [_ [_ Hwant]]. apply wants_phase in Hwant.
            apply phase_pending in Hwant; auto. destruct Hwant as [_ Hnc].
            pose proof (released _ _ M c n Hc) as Hrel.
            destruct (le_lt_dec o (release s c n)) as [| Hlt]. lia. exfalso.
            pose proof (window_open _ _ _ _ Hx Hw) as Hopen.
            assert (Hcomp : complete s c n o = true).
            { assert (segments p c = 0) by (unfold segments; rewrite (not_uses c Hu); reflexivity).
              assert (j < segments p x) by (unfold segments in *; lia). assert (opens s x m j < closes s x m j) by lia.
              apply (begin_runs _ _ MW x m j c n); auto. }
            assert (Hst : forall d, complete s c n (o + d) = true).
            { induction d. replace (o + 0) with o by lia. auto. replace (o + S d) with (S (o + d)) by lia.
              apply (complete_stays _ _ M); auto. }
            specialize (Hst (t - o)). replace (o + (t - o)) with t in Hst by (unfold o in *; lia). congruence.
          * intro n. eapply Nat.le_trans; [| apply (stop_job_count x m c n o (min b (o + l)) Hc Ha)].
            apply cnt_mono. intros t _ H. apply is_job_spec in H. apply is_job_spec. unfold f in H.
            destruct (in_window s x m j t); congruence.
          * apply Nat.mul_le_mono_r, ceil_nat_mono. lia.
    Qed.

    Lemma stops_bound x m c a b : task x -> task c -> n_above p x c = true -> b <= te ->
      cnt (stopped x m c) a b <= n_stop_time p x c.
    Proof.
      intros. unfold stop_time, stoppers.
      destruct (Nat.min_dec (sum nat 0 Nat.add (segs p x) (fun s0 => ceil_nat (length_bound s0
        + stop_jitter nat 0 Nat.add Nat.mul Nat.sub ident p (gpu p x) c) (T p c)))
        (ceil_nat (R p x + (R p c - n_cost p (gpu p x) c)) (T p c))) as [-> | ->].
      - apply stops_of_windows; auto.
      - apply stops_of_job; auto.
    Qed.

    (** ** Windows of other cores: (d) and (e) *)

    (** [sel c]: the stops by c are counted once for all windows, not window by window. *)
    Variable sel : nat -> bool.

    Definition stopped_job x t : option nat :=
      match holder s (gpu p x) t with
      | Some (y, m, _) =>
        if Nat.eqb y x && quiet s (gpu p x) t &&
          match exec s (core p x) t with Some (c, _) => n_above p x c && negb (sel c) | None => false end
        then Some m else None
      | None => None
      end.

    Lemma stopped_job_spec x m t : stopped_job x t = Some m ->
      exists c, task c /\ n_above p x c = true /\ sel c = false /\ stopped x m c t = true.
    Proof.
      unfold stopped_job. destruct (holder s (gpu p x) t) as [[[y m'] j] |] eqn:E; try discriminate.
      destruct (Nat.eqb y x && quiet s (gpu p x) t && _) eqn:Ec; try discriminate. intro H. injection H as ->.
      rewrite !andb_true_iff, Nat.eqb_eq in Ec. destruct Ec as [[-> Hq] He].
      destruct (exec s (core p x) t) as [[c n] |] eqn:Ex; try discriminate.
      apply andb_true_iff in He. destruct He as [Ha Hsel]. exists c. repeat split; auto.
      - destruct (exec_wants _ _ M _ _ _ _ Ex). auto.
      - destruct (sel c); auto.
      - apply stopped_spec. exists j, n. repeat split; auto. apply quiet_spec. auto.
    Qed.

    Definition remote_job x t :=
      match device_job x t with
      | Some m => Some m
      | None =>
        match held_run_job x t with
        | Some m => Some m
        | None => match update_job x t with Some m => Some m | None => stopped_job x t end
        end
      end.

    Definition unselected x := filter (fun c => negb (sel c)) (n_hpp p x).

    Lemma in_unselected x c : In c (unselected x) <-> task c /\ n_above p x c = true /\ sel c = false.
    Proof. unfold unselected. rewrite filter_In, in_hpp, negb_true_iff. tauto. Qed.

    Lemma remote_in x m t : t < te -> remote_job x t = Some m -> arr x m <= t < arr x m + late x.
    Proof.
      intros Ht H. unfold remote_job in H. destruct (device_job x t) eqn:E1.
      { injection H as ->. apply device_job_spec in E1. destruct E1 as [j [Hj _]].
        destruct (held_in _ _ _ _ Ht Hj). unfold late. lia. }
      destruct (held_run_job x t) eqn:E2.
      { injection H as ->. apply held_run_job_spec in E2. destruct E2 as [j [Hj _]].
        destruct (held_in _ _ _ _ Ht Hj). unfold late. lia. }
      destruct (update_job x t) eqn:E3.
      { injection H as ->. apply update_in; auto. }
      apply stopped_job_spec in H. destruct H as [c [_ [_ [_ H]]]]. apply stopped_spec in H.
      destruct H as [j [n [Hh _]]]. destruct (held_in _ _ _ _ Ht Hh). unfold late. lia.
    Qed.

    Lemma remote_count x m a b : task x -> b <= te ->
      cnt (is_job (remote_job x) m) a b <= n_hold p x + total (unselected x) (n_stop_time p x).
    Proof.
      intros Hx Hb. unfold hold.
      pose proof (device_count x m a b Hx). pose proof (held_run_count x m a b Hx).
      pose proof (update_count x m a b Hx).
      assert (Hs : cnt (is_job (stopped_job x) m) a b <= total (unselected x) (n_stop_time p x)).
      { eapply Nat.le_trans. apply (cnt_list _ (unselected x) (fun c => stopped x m c)).
        - intros t Ht Hj. apply is_job_spec, stopped_job_spec in Hj. destruct Hj as [c [H1' [H2' [H3' H4']]]].
          exists c. split; auto. apply in_unselected. auto.
        - apply total_mono. intros c Hc. apply in_unselected in Hc. apply stops_bound; tauto. }
      eapply Nat.le_trans.
      - apply (cnt_mono _ (fun t => is_job (device_job x) m t || (is_job (held_run_job x) m t
          || (is_job (update_job x) m t || is_job (stopped_job x) m t)))).
        intros t _ Hj. apply is_job_spec in Hj. unfold remote_job in Hj. rewrite !orb_true_iff, !is_job_spec.
        destruct (device_job x t); auto. destruct (held_run_job x t); auto. destruct (update_job x t); auto.
      - eapply Nat.le_trans. apply cnt_or. eapply Nat.le_trans. apply Nat.add_le_mono_l, cnt_or.
        eapply Nat.le_trans. apply Nat.add_le_mono_l, Nat.add_le_mono_l, cnt_or. lia.
    Qed.

    (** Hold and stops together: a job with more than R + 2 eps of them is cut there, which only makes N smaller. *)
    Lemma remote_bound x a b : task x -> b <= te ->
      cnt (is_some (remote_job x)) a b <=
      n_windows p x (b - a) * (n_hold p x + total (unselected x) (n_stop_time p x)).
    Proof.
      intros Hx Hb. set (W := n_hold p x + total (unselected x) (n_stop_time p x)). set (w := min W (late x)).
      pose proof (whole_at_most_R x Hx) as HW. unfold whole in HW.
      eapply Nat.le_trans.
      - apply (work_at_rate_one (arr x) (T p x) (T_positive _ V x Hx) (spaced x Hx) (remote_job x) a b (late x) w).
        + unfold w. lia.
        + intros. apply remote_in; auto. lia.
        + intro m. unfold w. apply Nat.min_glb. apply remote_count; auto.
          eapply Nat.le_trans. apply (cnt_inside_length _ a b (arr x m) (arr x m + late x)).
          intros t Ht Hj. apply is_job_spec in Hj. apply remote_in; auto. lia. lia.
      - unfold windows. apply Nat.mul_le_mono. apply ceil_nat_mono. unfold w, W, late, twice_eps. lia. unfold w. lia.
    Qed.

    (** All stops by a selected c of windows that delay i. *)
    Definition any_stop i c t : option nat :=
      match holder s (gpu p i) t with
      | Some (x, _, _) =>
        if n_above p x c && quiet s (gpu p i) t then run_job c t else None
      | None => None
      end.

    Lemma any_stop_bound i c a b : task c -> b <= te ->
      cnt (is_some (any_stop i c)) a b <=
      ceil_nat (b - a + (R p c - n_cost p (gpu p i) c)) (T p c) * n_cost p (gpu p i) c.
    Proof.
      intros Hc Hb.
      assert (Hspec : forall t n, any_stop i c t = Some n -> run_job c t = Some n /\
        exists x m j, holder s (gpu p i) t = Some (x, m, j) /\ n_above p x c = true).
      { intros t n H. unfold any_stop in H. destruct (holder s (gpu p i) t) as [[[x m] j] |]; try discriminate.
        destruct (n_above p x c && quiet s (gpu p i) t) eqn:E; try discriminate. apply andb_true_iff in E.
        split; auto. exists x, m, j. tauto. }
      apply (work_at_rate_one (arr c) (T p c) (T_positive _ V c Hc) (spaced c Hc)).
      - apply cost_at_most_R; auto.
      - intros t n Ht H. apply Hspec in H. apply run_in. lia. tauto.
      - intro n. apply cost_count; auto.
    Qed.

    (** ** The classification of instants *)

    (** Why i is delayed at t, if it is: class 1 to 3 of the proof. *)
    Definition delayed i t : Prop :=
      (exists h m, exec s (core p i) t = Some (h, m) /\ n_above p i h = true) \/
      (exists c x m, update s (gpu p i) t = Some c /\ owner (gpu p i) c = Some (x, m) /\ outranks i x) \/
      (exists x m j, update s (gpu p i) t = None /\ holder s (gpu p i) t = Some (x, m, j) /\ outranks i x).

    Definition selected := filter sel (tasks nat p).

    Lemma interference i t0 (own ups : nat -> bool) : task i ->
      (forall h m t, In h (n_hpp p i) -> t0 <= t < te -> segments p h = 0 -> exec s (core p h) t = Some (h, m) ->
        t0 <= release s h m) ->
      (forall t, t0 <= t < te -> own t = true \/ ups t = true \/ delayed i t) ->
      te - t0 <= cnt own t0 te + cnt ups t0 te
        + total (n_hpp p i) (fun h => n_local p i h (te - t0))
        + total (n_rem p i) (fun x => n_windows p x (te - t0)
            * (n_hold p x + total (unselected x) (n_stop_time p x)))
        + total selected (fun c => ceil_nat (te - t0 + (R p c - n_cost p (gpu p i) c)) (T p c)
            * n_cost p (gpu p i) c).
    Proof.
      intros Hi Hstart Hcover.
      pose (Ps := own :: ups :: map (fun h => is_some (local_job i h)) (n_hpp p i)
        ++ map (fun x => is_some (remote_job x)) (n_rem p i)
        ++ map (fun c => is_some (any_stop i c)) selected).
      assert (Hlocal : forall h m t, exec s (core p i) t = Some (h, m) -> n_above p i h = true ->
        exists P, In P Ps /\ P t = true).
      { intros h m t He Ha. exists (is_some (local_job i h)). split.
        - unfold Ps. right. right. apply in_or_app. left. apply (in_map (fun h => is_some (local_job i h))).
          apply in_hpp. split; auto. destruct (exec_wants _ _ M _ _ _ _ He); auto.
        - apply above_spec in Ha. destruct Ha as [Hc _]. rewrite <- Hc in He. apply run_job_spec in He.
          unfold is_some, local_job. destruct (n_same p i h); [unfold whole_job |]; rewrite He; reflexivity. }
      assert (Hlocal2 : forall x t, outranks i x -> core p x = core p i ->
        is_some (device_job x) t = true \/ is_some (update_job x) t = true -> exists P, In P Ps /\ P t = true).
      { intros x t Hr Hc H. exists (is_some (local_job i x)). split.
        - unfold Ps. right. right. apply in_or_app. left. apply (in_map (fun h => is_some (local_job i h))).
          apply outranks_local; auto.
        - destruct Hr as [_ [_ [Hs _]]]. unfold is_some, local_job in *. rewrite Hs.
          unfold whole_job. destruct (run_job x t); auto. destruct (device_job x t); auto. destruct H; auto; discriminate. }
      assert (Hremote : forall x t, outranks i x -> core p x <> core p i -> is_some (remote_job x) t = true ->
        exists P, In P Ps /\ P t = true).
      { intros x t Hr Hc H. exists (is_some (remote_job x)). split; auto.
        unfold Ps. right. right. apply in_or_app. right. apply in_or_app. left.
        apply (in_map (fun x => is_some (remote_job x))). apply outranks_remote; auto. }
      assert (Hall : forall t, t0 <= t < te -> exists P, In P Ps /\ P t = true).
      { intros t Ht. destruct (Hcover t Ht) as [H | [H | [H | [H | H]]]].
        - exists own. split; auto. left. reflexivity.
        - exists ups. split; auto. right. left. reflexivity.
        - destruct H as [h [m [He Ha]]]. eapply Hlocal; eauto.
        - destruct H as [c [x [m [Hu [Ho Hr]]]]]. destruct (Hr) as [Hx [_ [Hs _]]].
          pose proof (same_gpu_eq _ _ Hs) as Hg.
          assert (Hj : update_job x t = Some m).
          { unfold update_job. rewrite Hg, Hu, Ho, Nat.eqb_refl. reflexivity. }
          destruct (N.eq_dec (core p x) (core p i)) as [E | E].
          + apply (Hlocal2 x); auto. right. unfold is_some. rewrite Hj. reflexivity.
          + apply (Hremote x); auto. unfold is_some, remote_job. rewrite Hj.
            destruct (device_job x t); auto. destruct (held_run_job x t); auto.
        - destruct H as [x [m [j [Hu [Hh Hr]]]]]. destruct (Hr) as [Hx [_ [Hs Hrank]]].
          pose proof (same_gpu_eq _ _ Hs) as Hg. destruct (holder_facts _ _ _ _ _ Hh) as [_ [_ Hp]].
          assert (Hq : quiet s (gpu p x) t = true) by (apply quiet_spec; congruence).
          destruct (device_ready s x m t) eqn:Hd.
          { assert (Hj : device_job x t = Some m).
            { unfold device_job. rewrite Hg, Hh, <- Hg, Nat.eqb_refl, Hq, Hd. reflexivity. }
            destruct (N.eq_dec (core p x) (core p i)) as [E | E].
            - apply (Hlocal2 x); auto. left. unfold is_some. rewrite Hj. reflexivity.
            - apply (Hremote x); auto. unfold is_some, remote_job. rewrite Hj. reflexivity. }
          assert (Hhost : host_ready s x m t = true).
          { destruct (window_left _ _ M x m j t Hx Hp); auto. congruence. }
          assert (Hw : wants_core s x m t) by (right; exists j; auto).
          destruct (core_served _ _ MW x m t Hx Hw) as [c [n [He Hpr]]].
          destruct (exec_wants _ _ M _ _ _ _ He) as [Hc [Hcore Hcw]].
          destruct (Nat.eq_dec c x) as [-> | Hcx].
          { (* the host part of the holder runs *)
            assert (n = m). { apply (one_job x n m t); auto. apply wants_phase; auto. congruence. } subst n.
            destruct (N.eq_dec (core p x) (core p i)) as [E | E].
            - apply (Hlocal x m). congruence. pose proof (outranks_local i x Hi Hr E) as Hin.
              apply in_hpp in Hin. tauto.
            - apply (Hremote x); auto. unfold is_some, remote_job. destruct (device_job x t); auto.
              unfold held_run_job. rewrite Hg, Hh, Nat.eqb_refl. apply runs_spec in He. rewrite He. reflexivity. }
          (* it is stopped by c *)
          destruct Hpr as [| Hpr]; [contradiction |].
          assert (Ha : n_above p x c = true).
          { apply above_spec. split; auto. pose proof (cpu_distinct _ V x c Hx Hc ltac:(auto) ltac:(auto)). lia. }
          destruct (N.eq_dec (core p x) (core p i)) as [E | E].
          + apply (Hlocal c n). congruence. pose proof (outranks_local i x Hi Hr E) as Hin. apply in_hpp in Hin.
            destruct Hin as [_ Hin]. apply above_spec in Hin. apply above_spec in Ha. apply above_spec.
            destruct Hin, Ha. split. congruence. lia.
          + destruct (sel c) eqn:Hsel.
            * exists (is_some (any_stop i c)). split.
              { unfold Ps. right. right. apply in_or_app. right. apply in_or_app. right.
                apply (in_map (fun c => is_some (any_stop i c))). unfold selected. apply filter_In. split; auto.
                apply in_tasks; auto. }
              unfold is_some, any_stop. rewrite Hh, Ha. rewrite <- Hg, Hq. simpl.
              rewrite <- Hcore in He. apply run_job_spec in He. rewrite He. reflexivity.
            * apply (Hremote x); auto. unfold is_some, remote_job. destruct (device_job x t); auto.
              destruct (held_run_job x t); auto. destruct (update_job x t); auto.
              unfold stopped_job. rewrite Hg, Hh, <- Hg, Nat.eqb_refl, Hq, He, Ha, Hsel. reflexivity. }
      pose proof (cover Ps t0 te Hall) as H. unfold Ps in H. simpl total in H. rewrite !total_app, !total_map in H.
      assert (H1 : total (n_hpp p i) (fun h => cnt (is_some (local_job i h)) t0 te)
        <= total (n_hpp p i) (fun h => n_local p i h (te - t0))).
      { apply total_mono. intros h Hh. apply local_bound; auto. intros m t Ht Hseg He. eapply Hstart; eauto. }
      assert (H2 : total (n_rem p i) (fun x => cnt (is_some (remote_job x)) t0 te)
        <= total (n_rem p i) (fun x => n_windows p x (te - t0)
            * (n_hold p x + total (unselected x) (n_stop_time p x)))).
      { apply total_mono. intros x Hx. apply remote_bound; auto. apply (in_rem i x); auto. }
      assert (H3 : total selected (fun c => cnt (is_some (any_stop i c)) t0 te)
        <= total selected (fun c => ceil_nat (te - t0 + (R p c - n_cost p (gpu p i) c)) (T p c)
            * n_cost p (gpu p i) c)).
      { apply total_mono. intros c Hc. apply any_stop_bound; auto. unfold selected in Hc. apply filter_In in Hc.
        apply in_tasks. tauto. }
      lia.
    Qed.
  End Until.

  (** ** The prefix argument: the first job or window that exceeds its bound *)

  Hypothesis VW : valid p.
  Hypothesis MW : cores_obey p s.

  Lemma kept_earlier te te' : te' <= te -> kept te -> kept te'.
  Proof. intros H [K1 K2]. split; red; intros; [apply K1 | apply K2]; auto; lia. Qed.

  Lemma complete_later i k t t' : task i -> t <= t' -> complete s i k t = true -> complete s i k t' = true.
  Proof.
    intros Hi Ht H. replace t' with (t + (t' - t)) by lia. induction (t' - t) as [| d IH].
    - replace (t + 0) with t by lia. auto.
    - replace (t + S d) with (S (t + d)) by lia. apply (complete_stays _ _ M); auto.
  Qed.

  Lemma segment_in i j : j < segments p i -> In (segment_at p i j) (segs p i).
  Proof. intro H. apply nth_In. auto. Qed.

  (** While its window is open, i progresses, or an update is charged to it, or it is delayed. *)
  Lemma open_cases i k j t : task i -> ph i k t = Win j ->
    (host_unit p s i k j t = true \/ device_unit p s i k j t = true) \/
    (update_is s (gpu p i) (last_change s (gpu p i) (opens s i k j)) t = true \/
     update_is s (gpu p i) (in_flight (gpu p i) (opens s i k j)) t = true) \/
    delayed i t.
  Proof.
    intros Hi Hp. destruct (update s (gpu p i) t) as [c |] eqn:Hu.
    - right. destruct (update_of_open_window i k j t c Hi Hp Hu) as [-> | [-> | [x [m [Ho Hr]]]]].
      + left. left. unfold update_is. rewrite Hu. apply Nat.eqb_refl.
      + left. right. unfold update_is. rewrite Hu. apply Nat.eqb_refl.
      + right. right. left. exists c, x, m. auto.
    - destruct (holder_or_outranked i k t j Hi Hp) as [x [m [j' [Hh [[-> [-> ->]] | Hr]]]]].
      2: { right. right. right. right. exists x, m, j'. auto. }
      destruct (device_ready s i k t) eqn:Hd.
      { left. right. unfold device_unit. rewrite Hd, andb_true_r. apply andb_true_iff. split.
        apply holds_spec; auto. apply quiet_spec; auto. }
      assert (Hhost : host_ready s i k t = true) by (destruct (window_left _ _ M i k j t Hi Hp); auto; congruence).
      destruct (core_served _ _ MW i k t Hi) as [c [n [He Hpr]]]. right. exists j. auto.
      destruct (exec_wants _ _ M _ _ _ _ He) as [Hc [Hcore Hcw]].
      destruct (Nat.eq_dec c i) as [-> | Hci].
      + assert (n = k). { apply (one_job i n k t); auto. apply wants_phase; auto. congruence. } subst n.
        left. left. unfold host_unit. apply andb_true_iff. split. apply runs_spec; auto. apply in_window_spec; auto.
      + right. right. left. exists c, n. split; auto. apply above_spec. split; auto.
        destruct Hpr as [| Hpr]; [contradiction |].
        pose proof (cpu_distinct _ V i c Hi Hc ltac:(auto) ltac:(auto)). lia.
  Qed.

  Lemma no_selection x : unselected (fun _ => false) x = n_hpp p x.
  Proof.
    unfold unselected. induction (n_hpp p x); simpl; auto. f_equal. auto.
  Qed.

  Lemma window_step t : kept t ->
    (forall h m, task h -> pending s h m t -> t < arr h m + R p h) ->
    forall h m j, task h -> ph h m t = Win j -> t < opens s h m j + length_bound (segment_at p h j).
  Proof.
    intros K A h m j Hh Hp. set (b := opens s h m j). set (g := segment_at p h j).
    destruct (le_lt_dec (b + length_bound g) t) as [Hle |]; auto. exfalso.
    destruct (window_uses _ _ _ _ Hh Hp) as [Huse Hj].
    pose proof (window_open _ _ _ _ Hh Hp) as Hopen. fold b in Hopen.
    assert (Hwin : forall u, b <= u <= t -> ph h m u = Win j).
    { intros u Hu. apply (open_window _ _ _ u _ Hh Hp). fold b. lia. }
    destruct (F_above_rhs _ VW h g Hh (segment_in h j Hj)) as [HR | HF].
    { assert (Hpb : pending s h m b) by (apply phase_pending; auto; rewrite (Hwin b ltac:(lia)); congruence).
      assert (Hpt : pending s h m t) by (apply phase_pending; auto; congruence).
      pose proof (A h m Hh Hpt). destruct Hpb as [Hr _]. pose proof (released _ _ M h m Hh). lia. }
    set (te := b + length_bound g) in *.
    assert (Kt : kept te) by (apply (kept_earlier t); auto).
    pose proof (interference te (proj1 Kt) MW (proj2 Kt) (fun _ => false) h b
      (fun u => host_unit p s h m j u || device_unit p s h m j u)
      (fun u => update_is s (gpu p h) (last_change s (gpu p h) b) u
        || update_is s (gpu p h) (in_flight (gpu p h) b) u) Hh) as I.
    assert (Hstart : forall c n u, In c (n_hpp p h) -> b <= u < te -> segments p c = 0 ->
      exec s (core p c) u = Some (c, n) -> b <= release s c n).
    { intros c n u Hc Hu Hseg He. apply in_hpp in Hc. destruct Hc as [Hc Ha].
      destruct (le_lt_dec b (release s c n)) as [| Hlt]; auto. exfalso.
      assert (complete s c n b = true) by (apply (begin_runs _ _ MW h m j c n); auto; lia).
      destruct (exec_wants _ _ M _ _ _ _ He) as [_ [_ Hw]]. apply wants_phase in Hw. apply phase_pending in Hw; auto.
      destruct Hw as [_ Hnc]. assert (complete s c n u = true) by (apply (complete_later c n b u); auto; lia). congruence. }
    specialize (I Hstart).
    assert (Hcover : forall u, b <= u < te -> host_unit p s h m j u || device_unit p s h m j u = true \/
      update_is s (gpu p h) (last_change s (gpu p h) b) u
        || update_is s (gpu p h) (in_flight (gpu p h) b) u = true \/ delayed h u).
    { intros u Hu. rewrite !orb_true_iff. apply (open_cases h m j u); auto. apply Hwin. lia. }
    specialize (I Hcover). simpl total in I.
    assert (Hsel : selected (fun _ => false) = []).
    { unfold selected. induction (tasks nat p); simpl; auto. }
    rewrite Hsel in I. simpl total in I.
    assert (Hown : cnt (fun u => host_unit p s h m j u || device_unit p s h m j u) b te < host g + device g).
    { pose proof (cnt_or (host_unit p s h m j) (device_unit p s h m j) b te) as Hor.
      pose proof (cnt_within (host_unit p s h m j) b te 0 t ltac:(lia) ltac:(lia)) as H1.
      pose proof (cnt_within (device_unit p s h m j) b te 0 t ltac:(lia) ltac:(lia)) as H2.
      pose proof (host_limit h m j 0 t Hh) as H3. pose proof (device_limit h m j 0 t Hh) as H4. fold g in H3, H4.
      destruct (window_left _ _ M h m j t Hh Hp) as [Hr | Hr].
      - pose proof (host_left _ _ M h m j t Hh Hp Hr) as H5. fold g in H5. lia.
      - pose proof (device_left _ _ M h m j t Hh Hp Hr) as H5. fold g in H5. lia. }
    assert (Hups : cnt (fun u => update_is s (gpu p h) (last_change s (gpu p h) b) u
      || update_is s (gpu p h) (in_flight (gpu p h) b) u) b te
      <= eps p h + eps p h).
    { eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono; apply update_is_limit; auto. }
    assert (EL : te - b = length_bound g) by (unfold te; lia). rewrite EL in I.
    unfold window_rhs, twice_eps in HF.
    assert (E1 : total (n_rem p h) (fun x => n_windows p x (length_bound g)
        * (n_hold p x + total (unselected (fun _ => false) x) (n_stop_time p x)))
      = total (n_rem p h) (fun x => n_windows p x (length_bound g)
        * (n_hold p x + sum nat 0 Nat.add (n_hpp p x) (n_stop_time p x)))).
    { apply total_ext. intros x _. rewrite no_selection. reflexivity. }
    rewrite E1 in I.
    change (sum nat 0 Nat.add (n_hpp p h) (fun c => n_local p h c (length_bound g)))
      with (total (n_hpp p h) (fun c => n_local p h c (length_bound g))) in HF.
    change (sum nat 0 Nat.add (n_rem p h) (fun x => n_windows p x (length_bound g)
        * (n_hold p x + sum nat 0 Nat.add (n_hpp p x) (n_stop_time p x))))
      with (total (n_rem p h) (fun x => n_windows p x (length_bound g)
        * (n_hold p x + sum nat 0 Nat.add (n_hpp p x) (n_stop_time p x)))) in HF.
    lia.
  Qed.

  Lemma local_mono i h w w' : w <= w' -> n_local p i h w <= n_local p i h w'.
  Proof.
    intro H. unfold local. destruct (n_uses p h); [destruct (n_same p i h) |];
    apply Nat.mul_le_mono_r, ceil_nat_mono; lia.
  Qed.

  Lemma windows_mono x w w' : w <= w' -> n_windows p x w <= n_windows p x w'.
  Proof. intro H. unfold windows. apply ceil_nat_mono. lia. Qed.

  (** (e): per c, the smaller of both counts. *)
  Definition once i c w := ceil_nat (w + (R p c - n_cost p (gpu p i) c)) (T p c) * n_cost p (gpu p i) c.
  Definition by_window i c w :=
    total (filter (fun h => n_above p h c) (n_rem p i)) (fun h => n_windows p h w * n_stop_time p h c).

  Lemma selection i w :
    let sel := fun c => once i c w <? by_window i c w in
    total (n_rem p i) (fun x => n_windows p x w * (n_hold p x + total (unselected sel x) (n_stop_time p x)))
    + total (selected sel) (fun c => once i c w)
    = total (n_rem p i) (fun x => n_windows p x w * n_hold p x)
    + total (tasks nat p) (fun c => min (by_window i c w) (once i c w)).
  Proof.
    intro sel.
    rewrite (total_ext (n_rem p i) _ (fun x => n_windows p x w * n_hold p x
      + n_windows p x w * total (unselected sel x) (n_stop_time p x))) by (intros; lia).
    rewrite total_add.
    assert (E : total (n_rem p i) (fun x => n_windows p x w * total (unselected sel x) (n_stop_time p x))
      = total (tasks nat p) (fun c => if sel c then 0 else by_window i c w)).
    { rewrite (total_ext (n_rem p i) _ (fun x => total (tasks nat p) (fun c =>
        if n_above p x c then if sel c then 0 else n_windows p x w * n_stop_time p x c else 0))).
      - rewrite total_exchange. apply total_ext. intros c _. unfold by_window. rewrite total_filter.
        destruct (sel c).
        + rewrite (total_ext (n_rem p i) _ (fun _ => 0)). apply total_zero. intros x _. destruct (n_above p x c); reflexivity.
        + reflexivity.
      - intros x _. rewrite <- total_mul. unfold unselected, hpp. rewrite !total_filter. apply total_ext.
        intros c _. destruct (n_above p x c), (sel c); reflexivity. }
    rewrite E. unfold selected. rewrite total_filter. rewrite <- Nat.add_assoc, <- total_add. f_equal.
    apply total_ext. intros c _. unfold sel. destruct (once i c w <? by_window i c w) eqn:El.
    - apply Nat.ltb_lt in El. lia.
    - apply Nat.ltb_ge in El. lia.
  Qed.

  Lemma busy_start (busy : nat -> bool) r :
    exists t0, t0 <= r /\ (forall u, t0 <= u < r -> busy u = true) /\ (t0 = 0 \/ busy (pred t0) = false).
  Proof.
    induction r as [| r [t0 [H1 [H2 H3]]]].
    - exists 0. repeat split; auto. intros. lia.
    - destruct (busy r) eqn:E.
      + exists t0. repeat split; auto. intros u Hu. destruct (Nat.eq_dec u r) as [-> |]; auto. apply H2. lia.
      + exists (S r). repeat split; auto. intros. lia.
  Qed.

  Definition busy_above i t :=
    match exec s (core p i) t with Some (h, _) => n_above p i h | None => false end.

  (** A task without windows that is pending wants its core: nobody below it runs. *)
  Lemma cpu_only_served i h m t : task h -> n_above p i h = true -> segments p h = 0 -> pending s h m t ->
    busy_above i t = true.
  Proof.
    intros Hh Ha Hseg [Hrel Hnc].
    assert (Hq : negb (complete s h m t) = true) by (rewrite Hnc; reflexivity).
    destruct (first_true (fun n => negb (complete s h n t)) m Hq) as [n [Hn [Hn1 Hn2]]].
    apply negb_true_iff in Hn1.
    assert (Hw : working s h n t).
    { split. split; auto.
      - destruct (Nat.eq_dec n m) as [-> |]; auto.
        pose proof (arrivals_ordered (arr h) (T p h) (T_positive _ V h Hh) (spaced h Hh) n m ltac:(lia)).
        pose proof (released _ _ M h n Hh). pose proof (released _ _ M h m Hh).
        pose proof (R_at_most_T h Hh). pose proof (R_contains _ V h Hh). lia.
      - intros k Hk. specialize (Hn2 k Hk). apply negb_false_iff in Hn2. auto. }
    apply (phase_working _ _ M) in Hw; auto.
    assert (Hcpu : ph h n t = Cpu).
    { destruct (ph h n t) as [| | | j] eqn:E; auto.
      - congruence.
      - pose proof (blocking_left _ _ M h n t Hh E) as Hb. rewrite (no_blocking _ V h Hh Hseg) in Hb. lia.
      - destruct (window_uses _ _ _ _ Hh E). lia. }
    destruct (core_served _ _ MW h n t Hh (or_introl Hcpu)) as [x [k [He Hpr]]].
    apply above_spec in Ha. destruct Ha as [Hc Hlt]. unfold busy_above. rewrite <- Hc, He. apply above_spec.
    destruct (exec_wants _ _ M _ _ _ _ He) as [Hx [Hcx _]]. split. congruence.
    destruct Hpr as [-> | Hpr]; lia.
  Qed.

  Definition any_window i (Q : nat -> nat -> bool) t := existsb (fun j => Q j t) (seq 0 (segments p i)).

  Lemma any_window_count i Q a b : cnt (any_window i Q) a b <= total (seq 0 (segments p i)) (fun j => cnt (Q j) a b).
  Proof.
    apply cnt_list. intros t _ H. unfold any_window in H. apply existsb_exists in H. destruct H as [j H]. exists j. auto.
  Qed.

  Lemma any_window_true i (Q : nat -> nat -> bool) t j : j < segments p i -> Q j t = true -> any_window i Q t = true.
  Proof. intros Hj H. apply existsb_exists. exists j. split; auto. apply in_seq. lia. Qed.

  Definition own_unit i k t :=
    cpu_unit p s i k t || (in_blocked s i k t ||
      (any_window i (host_unit p s i k) t || any_window i (device_unit p s i k) t)).

  (** A job that is at work has not had all its work. *)
  Lemma own_count i k t : task i -> ph i k t <> Idle ->
    cnt (own_unit i k) 0 t < C p i + B p i + n_Gm p i + n_Ge p i.
  Proof.
    intros Hi Hp.
    assert (H : cnt (own_unit i k) 0 t <= cnt (cpu_unit p s i k) 0 t + (cnt (in_blocked s i k) 0 t +
      (total (seq 0 (segments p i)) (fun j => cnt (host_unit p s i k j) 0 t) +
       total (seq 0 (segments p i)) (fun j => cnt (device_unit p s i k j) 0 t)))).
    { unfold own_unit. eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono_l.
      eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono_l.
      eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono; apply any_window_count. }
    pose proof (cpu_limit i k 0 t Hi). pose proof (blocked_limit i k 0 t Hi).
    pose proof (host_total i k 0 t Hi). pose proof (device_total i k 0 t Hi).
    destruct (ph i k t) as [| | | j] eqn:E.
    - congruence.
    - pose proof (cpu_left _ _ M i k t Hi E). lia.
    - pose proof (blocking_left _ _ M i k t Hi E). lia.
    - destruct (window_uses _ _ _ _ Hi E) as [_ Hj].
      assert (Hin : In j (seq 0 (segments p i))) by (apply in_seq; lia).
      assert (EGm : total (seq 0 (segments p i)) (fun j => host (segment_at p i j)) = n_Gm p i).
      { unfold segment_at, segments. apply (total_nth (segs p i) no_segment host). }
      assert (EGe : total (seq 0 (segments p i)) (fun j => device (segment_at p i j)) = n_Ge p i).
      { unfold segment_at, segments. apply (total_nth (segs p i) no_segment device). }
      destruct (window_left _ _ M i k j t Hi E) as [Hr | Hr].
      + assert (total (seq 0 (segments p i)) (fun j => cnt (host_unit p s i k j) 0 t)
          < total (seq 0 (segments p i)) (fun j => host (segment_at p i j))).
        { apply (total_lt _ _ _ j); auto. intros; apply host_limit; auto. apply (host_left _ _ M); auto. }
        lia.
      + assert (total (seq 0 (segments p i)) (fun j => cnt (device_unit p s i k j) 0 t)
          < total (seq 0 (segments p i)) (fun j => device (segment_at p i j))).
        { apply (total_lt _ _ _ j); auto. intros; apply device_limit; auto. apply (device_left _ _ M); auto. }
        lia.
  Qed.

  Definition own_update i k t :=
    any_window i (fun j t => update_is s (gpu p i) (last_change s (gpu p i) (opens s i k j)) t
      || update_is s (gpu p i) (in_flight (gpu p i) (opens s i k j)) t) t.

  Lemma own_update_count i k a b : task i -> cnt (own_update i k) a b <= n_updates p i.
  Proof.
    intro Hi. eapply Nat.le_trans.
    apply (any_window_count i (fun j t => update_is s (gpu p i) (last_change s (gpu p i) (opens s i k j)) t
      || update_is s (gpu p i) (in_flight (gpu p i) (opens s i k j)) t)).
    eapply Nat.le_trans. apply (total_mono _ _ (fun _ => eps p i + eps p i)).
    - intros j Hj. apply in_seq in Hj. assert (n_uses p i = true).
      { unfold uses, eta. unfold segments in Hj. destruct (length (segs p i)); auto. lia. }
      eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono; apply update_is_limit; auto.
    - rewrite total_const, seq_length. unfold updates, eta, segments, ident, twice_eps. lia.
  Qed.

  Lemma job_step t : kept t -> forall i k, task i -> pending s i k t -> t < arr i k + R p i.
  Proof.
    intros K i k Hi. induction k as [k IHk] using lt_wf_ind. intros Hpend.
    destruct (le_lt_dec (arr i k + R p i) t) as [Hle |]; auto. exfalso.
    pose proof (released _ _ M i k Hi) as Hrel. set (r := release s i k) in *.
    pose proof (R_contains _ V i Hi) as HRc. pose proof (R_at_most_T i Hi) as HRT.
    (* the job is at work from its release on *)
    assert (Hwork : forall u, r <= u <= t -> ph i k u <> Idle).
    { intros u Hu. apply (phase_working _ _ M); auto. split. split; auto. lia.
      - destruct (complete s i k u) eqn:E; auto. destruct Hpend as [_ Hnc].
        assert (complete s i k t = true) by (apply (complete_later i k u t); auto; lia). congruence.
      - intros m Hm. destruct (complete s i m u) eqn:E; auto. exfalso.
        pose proof (arrivals_ordered (arr i) (T p i) (T_positive _ V i Hi) (spaced i Hi) m k Hm) as Ho.
        pose proof (released _ _ M i m Hi) as Hrm.
        assert (Hpm : pending s i m u) by (split; auto; lia).
        destruct (Nat.eq_dec u t) as [-> |].
        + specialize (IHk m Hm Hpm). lia.
        + destruct K as [K1 _]. assert (Hut : u < t) by lia. pose proof (K1 i m u Hi Hut Hpm). lia. }
    destruct (busy_start (busy_above i) r) as [t0 [Ht0 [Hbusy Hbefore]]].
    set (L := R p i - J p i). set (te := t0 + L).
    assert (Hte : te <= t) by (unfold te, L; lia).
    assert (Kt : kept te) by (apply (kept_earlier t); auto).
    set (w := R p i - J p i). assert (HLw : L <= w) by (unfold L, w; lia).
    set (sel := fun c => once i c w <? by_window i c w).
    pose proof (interference te (proj1 Kt) MW (proj2 Kt) sel i t0 (own_unit i k) (own_update i k) Hi) as I.
    assert (Hstart : forall h m u, In h (n_hpp p i) -> t0 <= u < te -> segments p h = 0 ->
      exec s (core p h) u = Some (h, m) -> t0 <= release s h m).
    { intros h m u Hin Hu Hseg He. apply in_hpp in Hin. destruct Hin as [Hh Ha].
      destruct (le_lt_dec t0 (release s h m)) as [| Hlt]; auto. exfalso.
      destruct Hbefore as [-> | Hb]; [lia |].
      destruct (exec_wants _ _ M _ _ _ _ He) as [_ [_ Hw]]. apply wants_phase in Hw. apply phase_pending in Hw; auto.
      destruct Hw as [_ Hnc]. rewrite (cpu_only_served i h m (pred t0)) in Hb; auto. discriminate.
      split. lia. destruct (complete s h m (pred t0)) eqn:E; auto.
      assert (complete s h m u = true) by (apply (complete_later h m (pred t0) u); auto; lia). congruence. }
    specialize (I Hstart).
    assert (Hcover : forall u, t0 <= u < te -> own_unit i k u = true \/ own_update i k u = true \/ delayed i u).
    { intros u Hu. destruct (le_lt_dec r u) as [Hru | Hru].
      2: { right. right. left. assert (Hb : busy_above i u = true) by (apply Hbusy; lia).
           unfold busy_above in Hb. destruct (exec s (core p i) u) as [[h m] |]; try discriminate. exists h, m. auto. }
      assert (Hut : r <= u <= t) by lia. pose proof (Hwork u Hut) as Hph.
      destruct (ph i k u) as [| | | j] eqn:E.
      - congruence.
      - destruct (core_served _ _ MW i k u Hi (or_introl E)) as [c [n [He Hpr]]].
        destruct (exec_wants _ _ M _ _ _ _ He) as [Hc [Hcore Hcw]].
        destruct (Nat.eq_dec c i) as [-> | Hci].
        + assert (n = k). { apply (one_job i n k u); auto. apply wants_phase; auto. } subst n.
          left. unfold own_unit, cpu_unit, in_cpu. rewrite E. apply runs_spec in He. rewrite He. reflexivity.
        + right. right. left. exists c, n. split; auto. apply above_spec. split; auto.
          destruct Hpr as [| Hpr]; [contradiction |].
          pose proof (cpu_distinct _ V i c Hi Hc ltac:(auto) ltac:(auto)). lia.
      - left. unfold own_unit, in_blocked. rewrite E. simpl. apply orb_true_r.
      - destruct (window_uses _ _ _ _ Hi E) as [_ Hj].
        destruct (open_cases i k j u Hi E) as [[H | H] | [H | H]]; auto.
        + left. unfold own_unit. rewrite (any_window_true i (host_unit p s i k) u j Hj H), orb_true_l, !orb_true_r. auto.
        + left. unfold own_unit. rewrite (any_window_true i (device_unit p s i k) u j Hj H), !orb_true_r. auto.
        + right. left. unfold own_update. apply (any_window_true i _ u j Hj). apply orb_true_iff. auto. }
    specialize (I Hcover).
    replace (te - t0) with L in I by (unfold te; lia).
    assert (Hown : cnt (own_unit i k) t0 te < C p i + B p i + n_Gm p i + n_Ge p i).
    { eapply Nat.le_lt_trans. apply (cnt_within _ t0 te 0 t); lia. apply own_count; auto. apply Hwork.
      destruct Hpend. fold r in H. lia. }
    pose proof (own_update_count i k t0 te Hi) as Hups.
    assert (M1 : total (n_hpp p i) (fun h => n_local p i h L) <= total (n_hpp p i) (fun h => n_local p i h w)).
    { apply total_mono. intros. apply local_mono. auto. }
    assert (M2 : total (n_rem p i) (fun x => n_windows p x L * (n_hold p x + total (unselected sel x) (n_stop_time p x)))
      <= total (n_rem p i) (fun x => n_windows p x w * (n_hold p x + total (unselected sel x) (n_stop_time p x)))).
    { apply total_mono. intros. apply Nat.mul_le_mono_r. apply windows_mono. auto. }
    assert (M3 : total (selected sel) (fun c => ceil_nat (L + (R p c - n_cost p (gpu p i) c)) (T p c)
        * n_cost p (gpu p i) c) <= total (selected sel) (fun c => once i c w)).
    { apply total_mono. intros. apply Nat.mul_le_mono_r. apply ceil_nat_mono. lia. }
    pose proof (selection i w) as HS. simpl in HS. fold sel in HS.
    pose proof (R_above_rhs _ VW i Hi) as HR. unfold rhs, own in HR. fold w in HR.
    change (sum nat 0 Nat.add (n_hpp p i) (fun h => n_local p i h w))
      with (total (n_hpp p i) (fun h => n_local p i h w)) in HR.
    change (sum nat 0 Nat.add (n_rem p i) (fun h => n_windows p h w * n_hold p h))
      with (total (n_rem p i) (fun x => n_windows p x w * n_hold p x)) in HR.
    change (sum nat 0 Nat.add (tasks nat p) (fun c => stops_by nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident p i c w))
      with (total (tasks nat p) (fun c => min (by_window i c w) (once i c w))) in HR.
    assert (L + J p i = R p i) by (unfold L; lia). lia.
  Qed.

  Lemma always_kept t : kept t.
  Proof.
    induction t.
    - split; red; intros; lia.
    - pose proof (job_step t IHt) as HA. pose proof (window_step t IHt) as HB.
      destruct IHt as [K1 K2]. split.
      + intros h m u Hh Hu Hp. destruct (Nat.eq_dec u t) as [-> |]. apply HA; auto. apply K1; auto. lia.
      + intros h m j u Hh Hu Hp. destruct (Nat.eq_dec u t) as [-> |].
        apply HB; auto. apply K2; auto. lia.
  Qed.

  Lemma complete_in_time i k t : task i -> arr i k + R p i <= t -> complete s i k t = true.
  Proof.
    intros Hi Ht. destruct (complete s i k t) eqn:E; auto. exfalso.
    pose proof (released _ _ M i k Hi) as Hr. pose proof (R_contains _ V i Hi) as HR.
    assert (Hp : pending s i k t) by (split; auto; lia).
    destruct (always_kept (S t)) as [K1 _]. pose proof (K1 i k t Hi ltac:(lia) Hp). lia.
  Qed.
End Proof.

(** Theorem 1, threads suspend. *)
Theorem window_theorem p s (V : valid p) (M : obeys p s) i k t :
  i < count p -> arrival s i k + R p i <= t -> complete s i k t = true.
Proof. intros. apply (complete_in_time p s V M V M i k t); auto. Qed.
