(* SPDX-License-Identifier: Apache-2.0 *)
(** Numbers of instants, sums over lists, and lemma 2 of analysis/docs/window.md (work at rate one). Time is discrete:
    an instant is a natural number, an interval [s, e) is the instants t with s <= t < e. *)

From Coq Require Import List Arith Bool Lia.
Import ListNotations.

(** [cnt P s e]: how many instants of [s, e) satisfy P. *)
Fixpoint cnt_from (P : nat -> bool) (s n : nat) : nat :=
  match n with
  | 0 => 0
  | S m => cnt_from P s m + (if P (s + m) then 1 else 0)
  end.

Definition cnt P s e := cnt_from P s (e - s).

Lemma cnt_empty P s e : e <= s -> cnt P s e = 0.
Proof. intros. unfold cnt. replace (e - s) with 0 by lia. reflexivity. Qed.

Lemma cnt_S P s e : s <= e -> cnt P s (S e) = cnt P s e + (if P e then 1 else 0).
Proof.
  intros. unfold cnt. replace (S e - s) with (S (e - s)) by lia. simpl.
  replace (s + (e - s)) with e by lia. reflexivity.
Qed.

Lemma interval_ind (s : nat) (Q : nat -> Prop) :
  (forall e, e <= s -> Q e) -> (forall e, s <= e -> Q e -> Q (S e)) -> forall e, Q e.
Proof.
  intros H0 HS e. induction e.
  - apply H0. lia.
  - destruct (le_lt_dec s e). + apply HS; auto. + apply H0. lia.
Qed.

Lemma cnt_mono P Q s e : (forall t, s <= t < e -> P t = true -> Q t = true) -> cnt P s e <= cnt Q s e.
Proof.
  revert e. apply (interval_ind s (fun e => (forall t, s <= t < e -> P t = true -> Q t = true) -> cnt P s e <= cnt Q s e)).
  - intros. rewrite !cnt_empty by auto. lia.
  - intros e He IH H. rewrite !cnt_S by auto.
    assert (cnt P s e <= cnt Q s e) by (apply IH; intros; apply H; auto; lia).
    destruct (P e) eqn:E. + rewrite (H e); auto; lia. + destruct (Q e); lia.
Qed.

Lemma cnt_length P s e : cnt P s e <= e - s.
Proof.
  revert e. apply (interval_ind s (fun e => cnt P s e <= e - s)).
  - intros. rewrite cnt_empty; lia.
  - intros. rewrite cnt_S by auto. destruct (P e); lia.
Qed.

Lemma cnt_all P s e : (forall t, s <= t < e -> P t = true) -> cnt P s e = e - s.
Proof.
  revert e. apply (interval_ind s (fun e => (forall t, s <= t < e -> P t = true) -> cnt P s e = e - s)).
  - intros. rewrite cnt_empty; lia.
  - intros e He IH H. rewrite cnt_S by auto. rewrite IH by (intros; apply H; lia). rewrite H by lia. lia.
Qed.

Lemma cnt_none P s e : (forall t, s <= t < e -> P t = false) -> cnt P s e = 0.
Proof.
  revert e. apply (interval_ind s (fun e => (forall t, s <= t < e -> P t = false) -> cnt P s e = 0)).
  - intros. apply cnt_empty. auto.
  - intros e He IH H. rewrite cnt_S by auto. rewrite IH by (intros; apply H; lia). rewrite H by lia. lia.
Qed.

Lemma cnt_split P s m e : s <= m <= e -> cnt P s e = cnt P s m + cnt P m e.
Proof.
  intros [H1 H2]. revert e H2. apply (interval_ind m (fun e => m <= e -> cnt P s e = cnt P s m + cnt P m e)).
  - intros. assert (e = m) by lia. subst. rewrite (cnt_empty P m m); lia.
  - intros e He IH _. rewrite !cnt_S by lia. rewrite IH by auto. lia.
Qed.

Lemma cnt_within P s e s' e' : s' <= s -> e <= e' -> cnt P s e <= cnt P s' e'.
Proof.
  intros. destruct (le_lt_dec s e).
  - rewrite (cnt_split P s' s e') by lia. rewrite (cnt_split P s e e') by lia. lia.
  - rewrite cnt_empty; lia.
Qed.

(** Instants outside of [a, b) do not count. *)
Lemma cnt_inside P s e a b :
  (forall t, s <= t < e -> P t = true -> a <= t < b) -> cnt P s e <= cnt P (max s a) (min e b).
Proof.
  intro H. destruct (le_lt_dec (max s a) (min e b)).
  - rewrite (cnt_split P s (max s a) e) by lia. rewrite (cnt_split P (max s a) (min e b) e) by lia.
    rewrite (cnt_none P s (max s a)). rewrite (cnt_none P (min e b) e). lia.
    all: intros t Ht; destruct (P t) eqn:E; auto; apply H in E; lia.
  - rewrite (cnt_none P s e). lia.
    intros t Ht. destruct (P t) eqn:E; auto. apply H in E; lia.
Qed.

Lemma cnt_inside_length P s e a b :
  (forall t, s <= t < e -> P t = true -> a <= t < b) -> cnt P s e <= min e b - max s a.
Proof. intro H. eapply Nat.le_trans. apply (cnt_inside P s e a b H). apply cnt_length. Qed.

Lemma cnt_or P Q s e : cnt (fun t => P t || Q t) s e <= cnt P s e + cnt Q s e.
Proof.
  revert e. apply (interval_ind s (fun e => cnt (fun t => P t || Q t) s e <= cnt P s e + cnt Q s e)).
  - intros. rewrite !cnt_empty; lia.
  - intros. rewrite !cnt_S by auto. destruct (P e), (Q e); simpl; lia.
Qed.

Lemma cnt_pos P s e : 0 < cnt P s e -> exists t, s <= t < e /\ P t = true.
Proof.
  revert e. apply (interval_ind s (fun e => 0 < cnt P s e -> exists t, s <= t < e /\ P t = true)).
  - intros e He H. rewrite cnt_empty in H; lia.
  - intros e He IH H. rewrite cnt_S in H by auto. destruct (P e) eqn:E.
    + exists e. split; auto; lia.
    + destruct IH as [t [Ht Hp]]. lia. exists t. split; auto; lia.
Qed.

Lemma cnt_pos_intro P s e t : s <= t < e -> P t = true -> 0 < cnt P s e.
Proof.
  intros Ht HP. rewrite (cnt_split P s t e) by lia. rewrite (cnt_split P t (S t) e) by lia.
  rewrite (cnt_S P t t) by lia. rewrite HP. lia.
Qed.

(** If something happens only while it has happened less than n times, it happens at most n times. *)
Lemma cnt_limit P n e : (forall t, t < e -> P t = true -> cnt P 0 t < n) -> cnt P 0 e <= n.
Proof.
  induction e; intro H.
  - rewrite cnt_empty; lia.
  - rewrite cnt_S by lia. destruct (P e) eqn:E.
    + specialize (H e ltac:(lia) E). lia.
    + assert (cnt P 0 e <= n) by (apply IHe; intros; apply H; auto; lia). lia.
Qed.

(** * Sums over lists *)

Definition total {X : Type} (l : list X) (f : X -> nat) : nat := fold_right (fun x a => f x + a) 0 l.

Lemma total_mono {X} (l : list X) f g : (forall x, In x l -> f x <= g x) -> total l f <= total l g.
Proof.
  induction l; simpl; intro H. lia.
  assert (f a <= g a) by auto. assert (total l f <= total l g) by auto. lia.
Qed.

Lemma total_ext {X} (l : list X) f g : (forall x, In x l -> f x = g x) -> total l f = total l g.
Proof. induction l; simpl; intro H; auto. Qed.

Lemma total_lt {X} (l : list X) f g x :
  (forall y, In y l -> f y <= g y) -> In x l -> f x < g x -> total l f < total l g.
Proof.
  induction l; simpl; intros H Hx Hlt. contradiction.
  assert (f a <= g a) by auto. assert (total l f <= total l g) by (apply total_mono; auto).
  destruct Hx as [-> | Hx]. lia.
  assert (total l f < total l g) by auto. lia.
Qed.

Lemma total_add {X} (l : list X) f g : total l (fun x => f x + g x) = total l f + total l g.
Proof. induction l; simpl; lia. Qed.

Lemma total_mul {X} (l : list X) n f : total l (fun x => n * f x) = n * total l f.
Proof. induction l; simpl; lia. Qed.

Lemma total_zero {X} (l : list X) : total l (fun _ => 0) = 0.
Proof. induction l; simpl; auto. Qed.

Lemma total_const {X} (l : list X) n : total l (fun _ => n) = length l * n.
Proof. induction l; simpl; lia. Qed.

Lemma total_app {X} (l m : list X) f : total (l ++ m) f = total l f + total m f.
Proof. induction l; simpl; lia. Qed.

Lemma total_map {X Y} (l : list X) (h : X -> Y) f : total (map h l) f = total l (fun x => f (h x)).
Proof. induction l; simpl; lia. Qed.

Lemma total_filter {X} (l : list X) (c : X -> bool) f :
  total (filter c l) f = total l (fun x => if c x then f x else 0).
Proof. induction l; simpl; auto. destruct (c a); simpl; lia. Qed.

Lemma total_exchange {X Y} (l : list X) (m : list Y) f :
  total l (fun x => total m (fun y => f x y)) = total m (fun y => total l (fun x => f x y)).
Proof.
  induction l; simpl. symmetry. apply total_zero. rewrite IHl. rewrite <- total_add. reflexivity.
Qed.

Lemma total_in {X} (l : list X) f x : In x l -> f x <= total l f.
Proof. induction l; simpl. contradiction. intros [-> | H]. lia. specialize (IHl H). lia. Qed.

Lemma total_at_most_one {X} (l : list X) f :
  NoDup l -> (forall x, In x l -> f x <= 1) -> (forall x y, In x l -> In y l -> 0 < f x -> 0 < f y -> x = y) ->
  total l f <= 1.
Proof.
  induction l as [| a l IH]; simpl; intros Hn H1 Hu. lia. inversion Hn as [| ? ? Ha Hl]; subst.
  assert (total l f <= 1) by (apply IH; auto).
  destruct (f a) as [| n] eqn:E. lia. pose proof (H1 a (or_introl eq_refl)).
  assert (total l f = 0); [| lia].
  rewrite (total_ext l f (fun _ => 0)). apply total_zero.
  intros x Hx. destruct (f x) eqn:Ex; auto. exfalso. apply Ha. rewrite (Hu a x); auto; lia.
Qed.

(** If every instant of [s, e) has some property of a list, their counts add up to the length at least. *)
Lemma cnt_any (Ps : list (nat -> bool)) s e :
  cnt (fun t => existsb (fun P => P t) Ps) s e <= total Ps (fun P => cnt P s e).
Proof.
  induction Ps; simpl. rewrite cnt_none; auto.
  eapply Nat.le_trans. apply (cnt_or a). lia.
Qed.

Lemma cover (Ps : list (nat -> bool)) s e :
  (forall t, s <= t < e -> exists P, In P Ps /\ P t = true) -> e - s <= total Ps (fun P => cnt P s e).
Proof.
  intro H. eapply Nat.le_trans; [| apply cnt_any]. rewrite cnt_all; auto.
  intros t Ht. apply existsb_exists. auto.
Qed.

(** * Jobs *)

Definition ceil_nat (x y : nat) : nat := (x + y - 1) / y.

Lemma ceil_nat_mono x x' y : x <= x' -> ceil_nat x y <= ceil_nat x' y.
Proof.
  intros. unfold ceil_nat. destruct y. simpl. lia. apply Nat.div_le_mono; lia.
Qed.

Lemma ceil_nat_enough x y : 0 < y -> x <= ceil_nat x y * y.
Proof.
  intro. unfold ceil_nat. pose proof (Nat.div_mod (x + y - 1) y ltac:(lia)).
  pose proof (Nat.mod_upper_bound (x + y - 1) y ltac:(lia)). nia.
Qed.

Definition is_job (f : nat -> option nat) (m : nat) (t : nat) : bool :=
  match f t with Some n => Nat.eqb n m | None => false end.
Definition is_some (f : nat -> option nat) (t : nat) : bool := match f t with Some _ => true | None => false end.

Lemma first_true (Q : nat -> bool) n : Q n = true -> exists m, m <= n /\ Q m = true /\ forall k, k < m -> Q k = false.
Proof.
  induction n as [n IH] using lt_wf_ind. intro H.
  destruct (existsb Q (seq 0 n)) eqn:E.
  - apply existsb_exists in E. destruct E as [x [Hx Hq]]. apply in_seq in Hx.
    destruct (IH x ltac:(lia) Hq) as [m [Hm [Hm2 Hm3]]]. exists m. repeat split; auto. lia.
  - exists n. repeat split; auto. intros k Hk. destruct (Q k) eqn:Ek; auto.
    assert (existsb Q (seq 0 n) = true). { apply existsb_exists. exists k. split; auto. apply in_seq. lia. }
    congruence.
Qed.

Section Work.
  Variable arr : nat -> nat.
  Variable T : nat.
  Hypothesis T_pos : 0 < T.
  Hypothesis sporadic : forall m, arr m + T <= arr (S m).

  Lemma arrivals_apart m n : arr m + n * T <= arr (m + n).
  Proof.
    induction n; simpl. replace (m + 0) with m by lia. lia.
    replace (m + S n) with (S (m + n)) by lia. pose proof (sporadic (m + n)). lia.
  Qed.

  Lemma arrivals_ordered m n : m < n -> arr m + T <= arr n.
  Proof.
    intros. replace n with (m + (n - m)) by lia. pose proof (arrivals_apart m (n - m)).
    assert (1 * T <= (n - m) * T) by (apply Nat.mul_le_mono_r; lia). lia.
  Qed.

  (** Instants charged to jobs m1, m1+1, ..., m1+n-1. *)
  Lemma cnt_jobs f s e m1 n :
    (forall t m, s <= t < e -> f t = Some m -> m1 <= m < m1 + n) ->
    cnt (is_some f) s e <= total (seq m1 n) (fun m => cnt (is_job f m) s e).
  Proof.
    intro H. eapply Nat.le_trans; [ apply (cnt_mono _ (fun t => existsb (fun P => P t) (map (is_job f) (seq m1 n)))) |].
    - intros t Ht Hs. unfold is_some in Hs. destruct (f t) as [m |] eqn:E; try discriminate.
      apply existsb_exists. exists (is_job f m). split.
      + apply in_map. apply in_seq. eapply H; eauto.
      + unfold is_job. rewrite E. apply Nat.eqb_refl.
    - eapply Nat.le_trans. apply cnt_any. rewrite total_map. lia.
  Qed.

  (** Lemma 2, and its simpler sister for work without carry-in. *)
  Lemma work_without_carry_in f s e Jr w :
    (forall t m, s <= t < e -> f t = Some m -> arr m <= t /\ s <= arr m + Jr) ->
    (forall m, cnt (is_job f m) s e <= w) ->
    cnt (is_some f) s e <= ceil_nat (e - s + Jr) T * w.
  Proof.
    intros Hin Hw. set (N := ceil_nat (e - s + Jr) T).
    destruct (cnt (is_some f) s e) as [| c] eqn:E0. lia. rewrite <- E0.
    destruct (cnt_pos (is_some f) s e ltac:(lia)) as [t0 [Ht0 Hs0]].
    unfold is_some in Hs0. destruct (f t0) as [m0 |] eqn:Em0; try discriminate.
    assert (Hq : (0 <? cnt (is_job f m0) s e) = true).
    { apply Nat.ltb_lt. apply (cnt_pos_intro _ s e t0); auto. unfold is_job. rewrite Em0. apply Nat.eqb_refl. }
    destruct (first_true (fun m => 0 <? cnt (is_job f m) s e) m0 Hq) as [m1 [_ [Hm1 Hmin]]].
    apply Nat.ltb_lt in Hm1. destruct (cnt_pos _ _ _ Hm1) as [t1 [Ht1 Hj1]].
    unfold is_job in Hj1. destruct (f t1) as [m1' |] eqn:Em1; try discriminate. apply Nat.eqb_eq in Hj1. subst m1'.
    destruct (Hin t1 m1 Ht1 Em1) as [_ Ha1].
    assert (HN : e - s + Jr <= N * T) by (apply ceil_nat_enough; auto).
    eapply Nat.le_trans. apply (cnt_jobs f s e m1 N).
    - intros t m Ht Em. split.
      + destruct (le_lt_dec m1 m); auto. specialize (Hmin m ltac:(lia)). apply Nat.ltb_ge in Hmin.
        assert (0 < cnt (is_job f m) s e).
        { apply (cnt_pos_intro _ s e t); auto. unfold is_job. rewrite Em. apply Nat.eqb_refl. } lia.
      + destruct (le_lt_dec (m1 + N) m) as [L |]; auto.
        pose proof (arrivals_apart m1 (m - m1)) as HA. replace (m1 + (m - m1)) with m in HA by lia.
        assert (N * T <= (m - m1) * T) by (apply Nat.mul_le_mono_r; lia).
        destruct (Hin t m Ht Em). lia.
    - eapply Nat.le_trans. apply (total_mono _ _ (fun _ => w)). auto.
      rewrite total_const, seq_length. lia.
  Qed.

  (** The jobs whose instants lie in [s, e) are N in a row, if they arrive at s - Jr or later. *)
  Lemma jobs_in_range f s e Jr :
    (forall t m, s <= t < e -> f t = Some m -> arr m <= t /\ s <= arr m + Jr) ->
    exists m1, forall t m, s <= t < e -> f t = Some m -> m1 <= m < m1 + ceil_nat (e - s + Jr) T.
  Proof.
    intro Hin. set (N := ceil_nat (e - s + Jr) T).
    assert (HN : e - s + Jr <= N * T) by (apply ceil_nat_enough; auto).
    destruct (cnt (is_some f) s e) as [| c] eqn:E0.
    { exists 0. intros t m Ht Em. pose proof (cnt_pos_intro (is_some f) s e t Ht) as H. unfold is_some in H at 1.
      rewrite Em in H. specialize (H eq_refl). lia. }
    destruct (cnt_pos (is_some f) s e ltac:(lia)) as [t0 [Ht0 Hs0]].
    unfold is_some in Hs0. destruct (f t0) as [m0 |] eqn:Em0; try discriminate.
    assert (Hq : (s <=? arr m0 + Jr) = true) by (apply Nat.leb_le; destruct (Hin t0 m0 Ht0 Em0); auto).
    destruct (first_true (fun m => s <=? arr m + Jr) m0 Hq) as [m1 [_ [Hm1 Hmin]]]. apply Nat.leb_le in Hm1.
    exists m1. intros t m Ht Em. destruct (Hin t m Ht Em) as [Ha Hb]. split.
    - destruct (le_lt_dec m1 m) as [| L]; auto. specialize (Hmin m L). apply Nat.leb_gt in Hmin. lia.
    - destruct (le_lt_dec (m1 + N) m) as [L |]; auto. exfalso.
      pose proof (arrivals_apart m1 (m - m1)) as HA. replace (m1 + (m - m1)) with m in HA by lia.
      assert (N * T <= (m - m1) * T) by (apply Nat.mul_le_mono_r; lia). lia.
  Qed.

  (** Work without carry-in is below its bound if one of the jobs has not had all its work. *)
  Lemma work_strict f s e Jr w m0 :
    (forall t m, s <= t < e -> f t = Some m -> arr m <= t /\ s <= arr m + Jr) ->
    (forall m, cnt (is_job f m) s e <= w) ->
    arr m0 < e -> s <= arr m0 + Jr -> cnt (is_job f m0) s e < w ->
    cnt (is_some f) s e < ceil_nat (e - s + Jr) T * w.
  Proof.
    intros Hin Hw Ha0 Hs0 Hlt. set (N := ceil_nat (e - s + Jr) T).
    assert (HN : e - s + Jr <= N * T) by (apply ceil_nat_enough; auto).
    assert (Hq : (s <=? arr m0 + Jr) = true) by (apply Nat.leb_le; auto).
    destruct (first_true (fun m => s <=? arr m + Jr) m0 Hq) as [m1 [Hm10 [Hm1 Hmin]]]. apply Nat.leb_le in Hm1.
    assert (Hrange : forall m, arr m < e -> s <= arr m + Jr -> m1 <= m < m1 + N).
    { intros m Ha Hb. split.
      - destruct (le_lt_dec m1 m) as [| L]; auto. specialize (Hmin m L). apply Nat.leb_gt in Hmin. lia.
      - destruct (le_lt_dec (m1 + N) m) as [L |]; auto. exfalso.
        pose proof (arrivals_apart m1 (m - m1)) as HA. replace (m1 + (m - m1)) with m in HA by lia.
        assert (N * T <= (m - m1) * T) by (apply Nat.mul_le_mono_r; lia). lia. }
    eapply Nat.le_lt_trans. apply (cnt_jobs f s e m1 N).
    - intros t m Ht Em. destruct (Hin t m Ht Em). apply Hrange; lia.
    - replace (N * w) with (total (seq m1 N) (fun _ => w)) by (rewrite total_const, seq_length; auto).
      apply (total_lt _ _ _ m0); auto. apply in_seq. apply Hrange; auto.
  Qed.

  Lemma work_at_rate_one f s e R w :
    w <= R ->
    (forall t m, s <= t < e -> f t = Some m -> arr m <= t < arr m + R) ->
    (forall m, cnt (is_job f m) s e <= w) ->
    cnt (is_some f) s e <= ceil_nat (e - s + (R - w)) T * w.
  Proof.
    intros HwR Hin Hw. set (N := ceil_nat (e - s + (R - w)) T).
    destruct (cnt (is_some f) s e) as [| c] eqn:E0. lia. rewrite <- E0.
    destruct (cnt_pos (is_some f) s e ltac:(lia)) as [t0 [Ht0 Hs0]].
    unfold is_some in Hs0. destruct (f t0) as [m0 |] eqn:Em0; try discriminate.
    assert (Hq : (0 <? cnt (is_job f m0) s e) = true).
    { apply Nat.ltb_lt. apply (cnt_pos_intro _ s e t0); auto. unfold is_job. rewrite Em0. apply Nat.eqb_refl. }
    destruct (first_true (fun m => 0 <? cnt (is_job f m) s e) m0 Hq) as [m1 [_ [Hm1 Hmin]]].
    apply Nat.ltb_lt in Hm1. destruct (cnt_pos _ _ _ Hm1) as [t1 [Ht1 Hj1]].
    unfold is_job in Hj1. destruct (f t1) as [m1' |] eqn:Em1; try discriminate. apply Nat.eqb_eq in Hj1. subst m1'.
    destruct (Hin t1 m1 Ht1 Em1) as [Ha1 Hb1].
    assert (HN : e - s + (R - w) <= N * T) by (apply ceil_nat_enough; auto).
    destruct (le_lt_dec T w) as [HTw | HTw].
    { (* every instant of the interval *)
      assert (cnt (is_some f) s e <= e - s) by apply cnt_length.
      assert (N * T <= N * w) by (apply Nat.mul_le_mono_l; auto). lia. }
    assert (Hge : forall t m, s <= t < e -> f t = Some m -> m1 <= m).
    { intros t m Ht Em. destruct (le_lt_dec m1 m); auto. specialize (Hmin m ltac:(lia)). apply Nat.ltb_ge in Hmin.
      assert (0 < cnt (is_job f m) s e).
      { apply (cnt_pos_intro _ s e t); auto. unfold is_job. rewrite Em. apply Nat.eqb_refl. } lia. }
    destruct (le_lt_dec s (arr m1 + (R - w))) as [Hearly | Hlate].
    - (* no carry-in beyond the jitter: at most N jobs *)
      eapply Nat.le_trans. apply (cnt_jobs f s e m1 N).
      + intros t m Ht Em. split. eapply Hge; eauto.
        destruct (le_lt_dec (m1 + N) m) as [L |]; auto.
        pose proof (arrivals_apart m1 (m - m1)) as HA. replace (m1 + (m - m1)) with m in HA by lia.
        assert (N * T <= (m - m1) * T) by (apply Nat.mul_le_mono_r; lia).
        destruct (Hin t m Ht Em). lia.
      + eapply Nat.le_trans. apply (total_mono _ _ (fun _ => w)). auto.
        rewrite total_const, seq_length. lia.
    - (* at most N + 1 jobs; the first and the last together contribute at most w *)
      set (d := s - (R - w) - arr m1).
      assert (Hd : 0 < d /\ d < w) by (unfold d; lia).
      assert (HN1 : 1 <= N) by (destruct N; [simpl in HN; lia | lia]).
      pose proof (arrivals_apart m1 N) as HA.
      eapply Nat.le_trans. apply (cnt_jobs f s e m1 (S N)).
      + intros t m Ht Em. split. eapply Hge; eauto.
        destruct (le_lt_dec (m1 + S N) m) as [L |]; auto. exfalso.
        assert (HB : arr (m1 + N) + T <= arr m) by (apply arrivals_ordered; lia).
        destruct (Hin t m Ht Em). unfold d in Hd. lia.
      + destruct N as [| N']; [lia |].
        change (seq m1 (S (S N'))) with (m1 :: seq (S m1) (S N')).
        rewrite (seq_S N' (S m1)). simpl total. rewrite total_app. simpl total.
        replace (S (m1 + N')) with (m1 + S N') by lia.
        assert (Hfirst : cnt (is_job f m1) s e <= w - d).
        { eapply Nat.le_trans. apply (cnt_inside_length _ s e (arr m1) (arr m1 + R)).
          intros t Ht Hj. unfold is_job in Hj. destruct (f t) eqn:E; try discriminate. apply Nat.eqb_eq in Hj. subst.
          eapply Hin; eauto. unfold d. lia. }
        assert (Hlast : cnt (is_job f (m1 + S N')) s e <= d).
        { eapply Nat.le_trans. apply (cnt_inside_length _ s e (arr (m1 + S N')) e).
          intros t Ht Hj. unfold is_job in Hj. destruct (f t) eqn:E; try discriminate. apply Nat.eqb_eq in Hj. subst.
          destruct (Hin t _ Ht E). lia. unfold d. lia. }
        assert (Hmid : total (seq (S m1) N') (fun m => cnt (is_job f m) s e) <= N' * w).
        { eapply Nat.le_trans. apply (total_mono _ _ (fun _ => w)). auto. rewrite total_const, seq_length. lia. }
        simpl. lia.
  Qed.
End Work.
