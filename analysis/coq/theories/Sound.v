(* SPDX-License-Identifier: Apache-2.0 *)
(** The checker computes with binary integers what the theorem says of natural numbers: an accepted certificate is a
    statement about every schedule. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Contexts Window Checker.
Import ListNotations.

Notation "# x" := (N.to_nat x) (at level 5, right associativity).

Definition nat_segment (g : segment N) : segment nat :=
  Segment #(host g) #(device g) #(length_bound g).

Definition nat_set (q : set N) : set nat := {|
  count := count q; core := core q; gpu := gpu q; prio := prio q; gprio := gprio q;
  segs := fun i => map nat_segment (segs q i);
  T := fun i => #(T q i); D := fun i => #(D q i); J := fun i => #(J q i); B := fun i => #(B q i);
  C := fun i => #(C q i); eps := fun i => #(eps q i); R := fun i => #(R q i) |}.

(** ** Computing in N and in nat agree *)

Section Agree.
  Variable q : set N.
  Notation p := (nat_set q).

  Lemma to_nat_div x y : #(x / y) = #x / #y.
  Proof.
    destruct (N.eq_dec y 0) as [-> | Hy]. destruct x; reflexivity.
    apply (Nat.div_unique #x #y #(x / y) #(x mod y)).
    - pose proof (N.mod_lt x y Hy). lia.
    - rewrite <- N2Nat.inj_mul, <- N2Nat.inj_add. f_equal. apply N.div_mod. auto.
  Qed.

  Lemma to_nat_ceil x y : #(ceil_div x y) = ceil_nat #x #y.
  Proof. unfold ceil_div, ceil_nat. rewrite to_nat_div. f_equal. lia. Qed.

  Lemma to_nat_sum {X} (l : list X) f g : (forall x, In x l -> #(f x) = g x) ->
    #(sum N 0%N N.add l f) = sum nat 0 Nat.add l g.
  Proof.
    induction l; intro H; simpl; auto. rewrite N2Nat.inj_add, H by (left; auto). rewrite IHl; auto.
    intros. apply H. right. auto.
  Qed.

  Lemma sum_map {X Y} (l : list X) (h : X -> Y) f : sum nat 0 Nat.add (map h l) f = sum nat 0 Nat.add l (fun x => f (h x)).
  Proof. induction l; simpl; auto. Qed.

  Lemma agree_eta i : eta nat p i = eta N q i.
  Proof. unfold eta. simpl. apply map_length. Qed.
  Lemma agree_uses i : uses nat p i = uses N q i.
  Proof. unfold uses. rewrite agree_eta. reflexivity. Qed.
  Lemma agree_above i h : above nat p i h = above N q i h.
  Proof. reflexivity. Qed.
  Lemma agree_hpp i : hpp nat p i = hpp N q i.
  Proof. reflexivity. Qed.
  Lemma agree_same i h : same_gpu nat p i h = same_gpu N q i h.
  Proof. unfold same_gpu. rewrite !agree_uses. reflexivity. Qed.
  Lemma agree_remote i h : remote nat p i h = remote N q i h.
  Proof. unfold remote. rewrite agree_same. reflexivity. Qed.
  Lemma agree_rem i : rem nat p i = rem N q i.
  Proof.
    unfold rem, tasks. simpl count. apply filter_ext. intro. apply agree_remote.
  Qed.

  Lemma agree_Gm i : Gm nat 0 Nat.add p i = #(Gm N 0%N N.add q i).
  Proof. unfold Gm. simpl. rewrite sum_map. symmetry. apply to_nat_sum. reflexivity. Qed.
  Lemma agree_Ge i : Ge nat 0 Nat.add p i = #(Ge N 0%N N.add q i).
  Proof. unfold Ge. simpl. rewrite sum_map. symmetry. apply to_nat_sum. reflexivity. Qed.
  Lemma agree_twice_eps i : twice_eps nat Nat.add p i = #(twice_eps N N.add q i).
  Proof. unfold twice_eps. rewrite N2Nat.inj_add. reflexivity. Qed.
  Lemma agree_updates i : n_updates p i = #(updates N N.add N.mul N.of_nat q i).
  Proof. unfold updates, twice_eps. rewrite agree_eta. simpl. rewrite N2Nat.inj_mul, Nat2N.id, N2Nat.inj_add. reflexivity. Qed.
  Lemma agree_cpu i : n_cpu p i = #(cpu_work N 0%N N.add q i).
  Proof. unfold cpu_work. rewrite agree_Gm, N2Nat.inj_add. reflexivity. Qed.
  Lemma agree_hold i : n_hold p i = #(hold N 0%N N.add N.mul N.of_nat q i).
  Proof. unfold hold. rewrite agree_Gm, agree_Ge, agree_updates, !N2Nat.inj_add. reflexivity. Qed.
  Lemma agree_whole i : n_whole p i = #(whole N 0%N N.add N.mul N.of_nat q i).
  Proof. unfold whole. rewrite agree_hold, N2Nat.inj_add. reflexivity. Qed.

  Lemma agree_local i h L L' : L' = #L ->
    n_local p i h L' = #(local N 0%N N.add N.mul N.sub ceil_div N.of_nat q i h L).
  Proof.
    intros ->. unfold local. rewrite agree_uses, agree_same, agree_whole, agree_cpu, agree_updates, agree_twice_eps.
    destruct (uses N q h); [destruct (same_gpu N q i h) |];
      rewrite N2Nat.inj_mul, to_nat_ceil, ?N2Nat.inj_add, ?N2Nat.inj_sub, ?N2Nat.inj_add; reflexivity.
  Qed.

  Lemma agree_cost g c : n_cost p g c = #(stop_cost N 0%N N.add N.mul N.of_nat q g c).
  Proof.
    unfold stop_cost. rewrite agree_uses, agree_cpu, agree_updates.
    destruct (uses N q c && negb (N.eqb (gpu q c) g)) eqn:E; simpl gpu; rewrite E; rewrite ?N2Nat.inj_add; reflexivity.
  Qed.

  Lemma agree_stoppers h c : n_stoppers p h c = #(stoppers N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q h c).
  Proof.
    unfold stoppers. rewrite N2Nat.inj_min. f_equal.
    - simpl segs. rewrite sum_map. symmetry. apply to_nat_sum. intros g _. simpl.
      rewrite to_nat_ceil, N2Nat.inj_add. f_equal. f_equal. unfold stop_jitter.
      rewrite agree_uses. destruct (uses N q c); [| reflexivity].
      rewrite N2Nat.inj_sub. change (gpu p h) with (gpu q h). rewrite agree_cost. reflexivity.
    - rewrite to_nat_ceil, N2Nat.inj_add, N2Nat.inj_sub. change (gpu p h) with (gpu q h). rewrite agree_cost. reflexivity.
  Qed.

  Lemma agree_stop_time h c : n_stop_time p h c = #(stop_time N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q h c).
  Proof.
    unfold stop_time. rewrite agree_stoppers, N2Nat.inj_mul. change (gpu p h) with (gpu q h). rewrite agree_cost.
    reflexivity.
  Qed.

  Lemma agree_windows h L L' : L' = #L ->
    n_windows p h L' = #(windows N 0%N N.add N.mul N.sub ceil_div N.of_nat q h L).
  Proof.
    intros ->. unfold windows. rewrite agree_hold, agree_twice_eps, to_nat_ceil, N2Nat.inj_add, N2Nat.inj_sub, N2Nat.inj_add.
    reflexivity.
  Qed.

  Lemma agree_window_rhs h g : n_window_rhs p h (nat_segment g) #(length_bound g)
    = #(window_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q h g (length_bound g)).
  Proof.
    unfold window_rhs. rewrite !N2Nat.inj_add. f_equal; [| f_equal].
    - rewrite agree_twice_eps. reflexivity.
    - rewrite agree_hpp. symmetry. apply to_nat_sum. intros. symmetry. apply agree_local. reflexivity.
    - rewrite agree_rem. symmetry. apply to_nat_sum. intros x _. rewrite N2Nat.inj_mul, N2Nat.inj_add.
      f_equal. symmetry. apply agree_windows. reflexivity.
      f_equal. symmetry. apply agree_hold. rewrite agree_hpp. apply to_nat_sum. intros. symmetry. apply agree_stop_time.
  Qed.

  Lemma agree_rhs i : n_rhs p i = #(rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat q i).
  Proof.
    unfold rhs. set (w := (R q i - J q i)%N).
    assert (Ew : R p i - J p i = #w) by (unfold w; rewrite N2Nat.inj_sub; reflexivity). rewrite Ew.
    rewrite !N2Nat.inj_add. f_equal; [f_equal | f_equal; [| f_equal]].
    - unfold own. rewrite !N2Nat.inj_add, agree_Gm, agree_Ge, agree_updates.
      reflexivity.
    - rewrite agree_hpp. symmetry. apply to_nat_sum. intros. symmetry. apply agree_local. reflexivity.
    - rewrite agree_rem. symmetry. apply to_nat_sum. intros x _. rewrite N2Nat.inj_mul.
      f_equal. symmetry. apply agree_windows. reflexivity. symmetry. apply agree_hold.
    - symmetry. apply to_nat_sum. intros c _. unfold stops_by. rewrite N2Nat.inj_min. f_equal.
      + rewrite agree_rem. apply to_nat_sum. intros x _. rewrite N2Nat.inj_mul. f_equal.
        symmetry. apply agree_windows. reflexivity. symmetry. apply agree_stop_time.
      + rewrite N2Nat.inj_mul, to_nat_ceil, N2Nat.inj_add, N2Nat.inj_sub.
        change (gpu p i) with (gpu q i). rewrite agree_cost. reflexivity.
  Qed.
End Agree.

(** ** What an accepted certificate contains *)

Lemma unless_nil b f : unless b f = [] -> b = true.
Proof. destruct b; auto; discriminate. Qed.

Lemma flat_map_nil {X Y} (f : X -> list Y) l : flat_map f l = [] -> forall x, In x l -> f x = [].
Proof.
  induction l; simpl; intros H x Hx. contradiction. apply app_eq_nil in H. destruct H as [H1 H2].
  destruct Hx as [<- | Hx]; auto.
Qed.

Ltac split_failures H :=
  repeat (apply app_eq_nil in H; let H1 := fresh "F" in destruct H as [H1 H]; apply unless_nil in H1).

Section Accepted.
  Variable c : certificate.
  Variable right : nat -> N.
  Variable window_right : nat -> segment N -> N.
  Hypothesis no_failures : failures_with c right window_right = [].
  Notation q := (set_of c).
  Notation p := (nat_set q).

  Lemma no_task_failures i : i < count p -> task_failures c right window_right i = [].
  Proof.
    intro Hi. pose proof no_failures as H. unfold failures_with in H. apply app_eq_nil in H. destruct H as [_ H].
    apply app_eq_nil in H. destruct H as [H _]. apply (flat_map_nil _ _ H). unfold all. apply in_seq. split. lia. exact Hi.
  Qed.

  Lemma no_pair_failures i h : i < count p -> h < count p -> pair_failures c i h = [].
  Proof.
    intros Hi Hh. pose proof no_failures as H. unfold failures_with in H. apply app_eq_nil in H. destruct H as [_ H].
    apply app_eq_nil in H. destruct H as [_ H].
    assert (Hin : forall x, x < count p -> In x (all c)) by (intros x Hx; unfold all; apply in_seq; split; [lia | exact Hx]).
    pose proof (flat_map_nil _ _ H i (Hin i Hi)) as H2. simpl in H2. apply (flat_map_nil _ _ H2). auto.
  Qed.

  Lemma numbered_in {X} (l : list X) x : In x l -> exists j, In (j, x) (numbered l).
  Proof.
    unfold numbered. intro H. apply In_nth_error in H. destruct H as [j Hj].
    assert (G : forall k (m : list X) n, nth_error m n = Some x -> In (k + n, x) (combine (seq k (length m)) m)).
    { intros k m. revert k. induction m; intros k n Hn. destruct n; discriminate.
      destruct n; simpl in *. injection Hn as ->. left. f_equal. lia.
      right. replace (k + S n) with (S k + n) by lia. apply IHm. auto. }
    exists (0 + j). apply G. auto.
  Qed.

  Lemma accepted_R i : i < count p -> #(right i) <= R p i.
  Proof.
    intros Hi. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
    apply N.leb_le in F4. change (R p i) with #(t_response (line c i)). lia.
  Qed.

  Lemma accepted_F i s : i < count p -> In s (segs p i) -> R p i <= length_bound s \/
    exists g, s = nat_segment g /\ #(window_right i g) <= length_bound s.
  Proof.
    intros Hi Hs. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
    simpl in Hs. rewrite map_map in Hs. apply in_map_iff in Hs. destruct Hs as [x [<- Hx]].
    destruct (numbered_in _ _ Hx) as [j Hj]. pose proof (flat_map_nil _ _ H (j, x) Hj) as H2.
    unfold segment_failures in H2. split_failures H2. apply unless_nil in H2.
    apply orb_true_iff in H2. destruct H2 as [H2 | H2]; apply N.leb_le in H2.
    - left. simpl. lia.
    - right. exists (segment_of x). split; auto. simpl. lia.
  Qed.

  (** The right-hand side contains the work of the task itself. *)
  Hypothesis contains : forall i,
    J p i + (C p i + (n_Gm p i + n_Ge p i)) + n_updates p i + B p i <= #(right i).

  Lemma accepted_set : well_formed p.
  Proof.
    constructor.
    - intros i Hi. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
      apply N.ltb_lt in F. simpl. clear - F. lia.
    - intros i Hi. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
      apply N.leb_le in F0. simpl. clear - F0. lia.
    - intros i Hi. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
      apply N.leb_le in F1. simpl. clear - F1. lia.
    - intros i Hi. pose proof (accepted_R i Hi) as H. pose proof (contains i). lia.
    - intros i Hi Hl. pose proof (no_task_failures i Hi) as H. unfold task_failures in H. split_failures H.
      apply orb_true_iff in F3. destruct F3 as [F3 | F3].
      + exfalso. unfold uses, eta in F3. simpl in F3, Hl. rewrite map_length in F3. rewrite !map_length in Hl.
        rewrite Hl in F3. discriminate.
      + apply N.eqb_eq in F3. simpl. rewrite F3. reflexivity.
    - intros i h Hi Hh Hne Hc He. pose proof (no_pair_failures i h Hi Hh) as H. unfold pair_failures in H.
      apply Nat.eqb_neq in Hne. rewrite Hne in H. split_failures H. simpl in Hc, He.
      rewrite He, Hc, !N.eqb_refl in F. discriminate.
    - intros i h Hi Hh Hne Hs He. pose proof (no_pair_failures i h Hi Hh) as H. unfold pair_failures in H.
      apply Nat.eqb_neq in Hne. rewrite Hne in H. split_failures H. simpl in He. rewrite agree_same in Hs.
      rewrite Hs, He, !N.eqb_refl in F0. discriminate.
    - intros i h Hi Hh Hne Hc Hs. pose proof (no_pair_failures i h Hi Hh) as H. unfold pair_failures in H.
      apply Nat.eqb_neq in Hne. rewrite Hne in H. split_failures H. simpl in Hc. rewrite agree_same in Hs.
      rewrite Hs, Hc, !N.eqb_refl in F1. simpl in F1. apply eqb_prop in F1. simpl.
      rewrite <- !N.ltb_lt, F1. tauto.
  Qed.
End Accepted.

Section Sound.
  Variable c : certificate.
  Hypothesis accepted : check c = true.
  Notation q := (set_of c).
  Notation p := (nat_set q).

  Lemma accepted_valid : valid p.
  Proof.
    assert (H : failures c = []). { unfold check in accepted. destruct (failures c); auto; discriminate. }
    unfold failures in H. constructor.
    - apply (accepted_set c _ _ H). intro i. unfold right_hand_side. rewrite <- agree_rhs. unfold rhs, own. lia.
    - intros i Hi. rewrite agree_rhs. apply (accepted_R c _ _ H i Hi).
    - intros i s Hi Hs. destruct (accepted_F c _ _ H i s Hi Hs) as [H1 | [g [-> H1]]]; auto. right.
      change (length_bound (nat_segment g)) with #(length_bound g) in *. rewrite agree_window_rhs. exact H1.
  Qed.

  (** An accepted certificate is a theorem about every schedule: each job is complete R after its arrival. *)
  Theorem checker_sound : forall s, obeys p s -> forall i k t,
    i < length (c_tasks c) -> arrival s i k + #(t_response (line c i)) <= t -> complete s i k t = true.
  Proof.
    intros s Hs i k t Hi Ht. apply (window_theorem p s accepted_valid Hs i k t); auto.
  Qed.

  Corollary deadlines_hold : forall s, obeys p s -> forall i k,
    i < length (c_tasks c) -> complete s i k (arrival s i k + #(t_deadline (line c i))) = true.
  Proof.
    intros s Hs i k Hi. apply (checker_sound s Hs i k); auto.
    pose proof (R_at_most_D _ accepted_valid i Hi) as H. simpl in H. lia.
  Qed.

  (** Theorems 7 and 14: so it is about every schedule of the daemon with contexts of idle tasks enabled (K) and
      anticipation (A). *)
  Corollary daemon_sound : forall s d, daemon_obeys p s d -> cores_obey p s -> forall i k t,
    i < length (c_tasks c) -> arrival s i k + #(t_response (line c i)) <= t -> complete s i k t = true.
  Proof. intros s d Hd Hc. apply checker_sound. apply (daemon_model p s d Hd Hc). Qed.

  (** And about every schedule without either. *)
  Corollary holder_sound : forall s, holder_obeys p s -> forall i k t,
    i < length (c_tasks c) -> arrival s i k + #(t_response (line c i)) <= t -> complete s i k t = true.
  Proof. intros s Hs. apply checker_sound. apply (holder_model p s Hs). Qed.
End Sound.
