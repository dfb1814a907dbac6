(* SPDX-License-Identifier: Apache-2.0 *)
(** The checker of theorem 11 and theorem 11 speak of the same numbers. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Contexts Window BoostRecurrence Boost Checker Sound BoostChecker.
Import ListNotations.

Section Agree.
  Variable q : set N.
  Notation p := (nat_set q).
  Notation N_number := (number N N.add N.sub ceil_div q).
  Notation N_in_windows := (number_in_windows N 0%N N.add N.sub ceil_div q).
  Notation N_number_of := (number_of N 0%N N.add N.sub N.min ceil_div q).

  Lemma agree_number L L' r r' v v' h : L' = #L -> r' = #r -> v' = #v -> n_number p L' r' v' h = #(N_number L r v h).
  Proof. intros -> -> ->. unfold number. rewrite to_nat_ceil, N2Nat.inj_add, N2Nat.inj_sub. reflexivity. Qed.

  Lemma agree_with_update h : n_with_update p h = #(with_update N N.add q h).
  Proof. unfold with_update. rewrite agree_twice_eps, N2Nat.inj_add. reflexivity. Qed.

  Lemma agree_device_updates h : n_device_updates p h = #(device_updates N 0%N N.add N.mul N.of_nat q h).
  Proof. unfold device_updates. rewrite agree_Ge, agree_updates, N2Nat.inj_add. reflexivity. Qed.

  Lemma agree_in_windows i r r' v v' h : r' = #r -> v' = #v -> n_in_windows p i r' v' h = #(N_in_windows i r v h).
  Proof.
    intros Hr Hv. unfold number_in_windows. simpl segs. rewrite sum_map. symmetry. apply to_nat_sum.
    intros g _. symmetry. apply agree_number; auto.
  Qed.

  Lemma agree_number_of i w w' r r' v v' h : w' = #w -> r' = #r -> v' = #v ->
    n_number_of p i w' r' v' h = #(N_number_of i w r v h).
  Proof.
    intros Hw Hr Hv. unfold number_of. rewrite N2Nat.inj_min. f_equal. apply agree_number; auto.
    apply agree_in_windows; auto.
  Qed.

  Lemma agree_stops y c : n_stops p y c = stops N q y c.
  Proof. unfold stops. rewrite agree_uses. reflexivity. Qed.

  Lemma agree_boosted_stop_time y c :
    n_boosted_stop_time p y c = #(boosted_stop_time N 0%N N.add N.mul N.sub N.min ceil_div q y c).
  Proof.
    unfold boosted_stop_time. rewrite N2Nat.inj_mul, N2Nat.inj_min. f_equal; [f_equal | apply agree_Gm].
    - apply agree_in_windows. reflexivity. apply agree_Gm.
    - apply agree_number. reflexivity. reflexivity. apply agree_Gm.
  Qed.

  Lemma agree_local_in_window i h L L' : L' = #L ->
    n_local_in_window p i h L' = #(local_in_window N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q i h L).
  Proof.
    intros ->. unfold local_in_window. rewrite agree_uses, agree_same, agree_hold, agree_Gm, agree_device_updates.
    destruct (uses N q h); [destruct (same_gpu N q i h) |]; auto.
    - rewrite N2Nat.inj_min, N2Nat.inj_add, !N2Nat.inj_mul. f_equal; [| f_equal]; f_equal; apply agree_number; auto;
        apply agree_with_update.
    - rewrite N2Nat.inj_mul. f_equal. apply agree_number; auto.
  Qed.

  Lemma agree_remote_terms i m m' once once' : (forall y, m' y = #(m y)) -> (forall y, once' y = #(once y)) ->
    n_remote_terms p i m' once' = #(remote_terms N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q i m once).
  Proof.
    intros Hm Ho. unfold remote_terms. rewrite N2Nat.inj_add, agree_rem. f_equal; symmetry; apply to_nat_sum.
    - intros y _. rewrite N2Nat.inj_mul, Hm, agree_hold. reflexivity.
    - intros c _. rewrite N2Nat.inj_min, N2Nat.inj_mul, Ho, agree_Gm. f_equal.
      rewrite (filter_ext (fun y => n_stops p y c) (fun y => stops N q y c)) by (intro; apply agree_stops).
      apply to_nat_sum. intros y _. rewrite N2Nat.inj_mul, Hm, agree_boosted_stop_time. reflexivity.
  Qed.

  Lemma agree_boosted_window_rhs i g : n_boosted_window_rhs p i (nat_segment g) #(length_bound g)
    = #(boosted_window_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q i g (length_bound g)).
  Proof.
    unfold boosted_window_rhs. rewrite !N2Nat.inj_add. f_equal. f_equal.
    - rewrite agree_hpp. symmetry. apply to_nat_sum. intros. symmetry. apply agree_local_in_window. reflexivity.
    - apply agree_remote_terms; intro; apply agree_number; auto.
      apply agree_with_update. apply agree_hold. apply agree_Gm.
  Qed.

  Lemma agree_boosted_local i h w w' : w' = #w ->
    n_boosted_local p i h w' = #(boosted_local N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q i h w).
  Proof.
    intros ->. unfold boosted_local. rewrite agree_uses, agree_same, agree_whole, agree_cpu, agree_device_updates.
    destruct (uses N q h); [destruct (same_gpu N q i h) |].
    - rewrite N2Nat.inj_min, N2Nat.inj_add, !N2Nat.inj_mul. f_equal; [| f_equal]; f_equal.
      + apply agree_number; auto. apply agree_with_update.
      + apply agree_number; auto.
      + apply agree_number_of; auto. apply agree_with_update.
    - rewrite N2Nat.inj_mul. f_equal. apply agree_number; auto.
    - rewrite N2Nat.inj_mul, to_nat_ceil, N2Nat.inj_add. reflexivity.
  Qed.

  Lemma agree_least {X} (l : list X) (f : X -> N) v0 :
    #(fold_right (fun x v => N.min (f x) v) v0 l) = fold_right (fun x v => min #(f x) v) #v0 l.
  Proof. induction l; simpl; auto. rewrite N2Nat.inj_min, IHl. reflexivity. Qed.

  Lemma fold_map {X Y} (l : list X) (h : X -> Y) (f : Y -> nat) v0 :
    fold_right (fun y v => min (f y) v) v0 (map h l) = fold_right (fun x v => min (f (h x)) v) v0 l.
  Proof. induction l; simpl; auto. Qed.

  Lemma fold_ext {X} (l : list X) (f g : X -> nat) v0 : (forall x, f x = g x) ->
    fold_right (fun y v => min (f y) v) v0 l = fold_right (fun x v => min (g x) v) v0 l.
  Proof. intro H. induction l; simpl; auto. Qed.

  Lemma agree_largest z n n' l : n' = #n ->
    n_largest p z n' l = #(largest N 0%N N.add N.mul N.sub N.min N.of_nat q z n l).
  Proof.
    intros ->. set (value' := fun x => z * x + #n * sum nat 0 Nat.add (segs p l) (fun g => host g - x)).
    set (value := fun x => (N.of_nat z * x + n * sum N 0%N N.add (segs q l) (fun g => (host g - x)%N))%N).
    assert (Hv : forall x, value' #x = #(value x)).
    { intro x. unfold value, value'. rewrite N2Nat.inj_add, !N2Nat.inj_mul, Nat2N.id. f_equal. f_equal.
      simpl segs. rewrite sum_map. symmetry. apply to_nat_sum. intros g _. rewrite N2Nat.inj_sub. reflexivity. }
    change (n_largest p z #n l)
      with (fold_right (fun g v => min (value' (host g)) v) (value' #0%N) (map nat_segment (segs q l))).
    change (largest N 0%N N.add N.mul N.sub N.min N.of_nat q z n l)
      with (fold_right (fun g v => N.min (value (host g)) v) (value 0%N) (segs q l)).
    rewrite agree_least, Hv, fold_map. apply fold_ext. intro g. apply (Hv (host g)).
  Qed.

  Lemma agree_blocking_by i l w w' : w' = #w ->
    n_blocking_by p i l w' = #(blocking_by N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat is_zero q i l w).
  Proof.
    intros ->. unfold blocking_by.
    assert (Hz : zerob (B p i) = is_zero (B q i)).
    { unfold zerob, is_zero. change (B p i) with #(B q i). destruct (N.eq_dec (B q i) 0) as [-> | Hne]; auto.
      rewrite (proj2 (N.eqb_neq _ _) Hne). apply Nat.eqb_neq. lia. }
    assert (Hn : ceil_nat (#w + R p l) (T p l) = #(ceil_div (w + R q l) (T q l))).
    { rewrite to_nat_ceil, N2Nat.inj_add. reflexivity. }
    rewrite Hz, Hn, agree_eta, agree_Gm. destruct (is_zero (B q i)).
    - apply agree_largest. reflexivity.
    - rewrite N2Nat.inj_mul. reflexivity.
  Qed.

  Lemma agree_lower i : n_lower p i = lower N q i.
  Proof. reflexivity. Qed.

  Lemma agree_boosted_rhs i :
    n_boosted_rhs p i = #(boosted_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat is_zero q i).
  Proof.
    unfold boosted_rhs. set (w := (R q i - J q i)%N).
    assert (Ew : R p i - J p i = #w) by (unfold w; rewrite N2Nat.inj_sub; reflexivity). rewrite Ew.
    rewrite !N2Nat.inj_add. f_equal; [f_equal | f_equal; [| f_equal]].
    - unfold own. rewrite !N2Nat.inj_add, agree_Gm, agree_Ge, agree_updates. reflexivity.
    - rewrite agree_hpp. symmetry. apply to_nat_sum. intros. symmetry. apply agree_boosted_local. reflexivity.
    - apply agree_remote_terms; intro; apply agree_number_of; auto.
      apply agree_with_update. apply agree_hold. apply agree_Gm.
    - rewrite agree_lower. symmetry. apply to_nat_sum. intros. symmetry. apply agree_blocking_by. reflexivity.
  Qed.
End Agree.

Section Sound.
  Variable c : certificate.
  Hypothesis accepted : boost_check c = true.
  Notation p := (nat_set (set_of c)).

  Lemma accepted_boost_valid : boost_valid p.
  Proof.
    assert (H : boost_failures c = []).
    { unfold boost_check in accepted. destruct (boost_failures c); auto; discriminate. }
    unfold boost_failures in H. constructor.
    - apply (accepted_set c _ _ H). intro i. unfold boosted_right_hand_side. rewrite <- agree_boosted_rhs.
      unfold boosted_rhs, own. lia.
    - intros i Hi. rewrite agree_boosted_rhs. apply (accepted_R c _ _ H i Hi).
    - intros i s Hi Hs. destruct (accepted_F c _ _ H i s Hi Hs) as [H1 | [g [-> H1]]]; auto. right.
      change (length_bound (nat_segment g)) with #(length_bound g) in *. rewrite agree_boosted_window_rhs. exact H1.
  Qed.

  (** Theorem 11: an accepted certificate bounds every schedule with boost ... *)
  Theorem boost_checker_sound : forall s, boost_obeys p s -> forall i k t,
    i < length (c_tasks c) -> arrival s i k + #(t_response (line c i)) <= t -> complete s i k t = true.
  Proof. intros s Hs i k t Hi Ht. apply (boost_theorem p s accepted_boost_valid Hs i k t); auto. Qed.

  (** ... also of the daemon with contexts of idle tasks enabled (K) and anticipation (A). *)
  Corollary boost_daemon_sound : forall s d, daemon_obeys p s d -> boost_cores_obey p s -> forall i k t,
    i < length (c_tasks c) -> arrival s i k + #(t_response (line c i)) <= t -> complete s i k t = true.
  Proof. intros s d Hd Hc. apply boost_checker_sound. apply (daemon_boost_model p s d Hd Hc). Qed.
End Sound.
