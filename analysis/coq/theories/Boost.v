(* SPDX-License-Identifier: Apache-2.0 *)
(** Theorem 11 of analysis/docs/boost.md, fixed priorities, boost from begin to end (M8'): in every schedule that obeys
    the model with boost, every job is complete R after its arrival, if R and F satisfy the recurrences. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model Window BoostRecurrence.
Import ListNotations.

Definition zerob (n : nat) := Nat.eqb n 0.
Notation n_number := (number nat Nat.add Nat.sub ceil_nat).
Notation n_with_update := (with_update nat Nat.add).
Notation n_device_updates := (device_updates nat 0 Nat.add Nat.mul ident).
Notation n_in_windows := (number_in_windows nat 0 Nat.add Nat.sub ceil_nat).
Notation n_number_of := (number_of nat 0 Nat.add Nat.sub Nat.min ceil_nat).
Notation n_stops := (stops nat).
Notation n_boosted_stop_time := (boosted_stop_time nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat).
Notation n_local_in_window := (local_in_window nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_remote_terms := (remote_terms nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_boosted_window_rhs := (boosted_window_rhs nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_boosted_local := (boosted_local nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident).
Notation n_largest := (largest nat 0 Nat.add Nat.mul Nat.sub Nat.min ident).
Notation n_lower := (lower nat).
Notation n_blocking_by := (blocking_by nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident zerob).
Notation n_boosted_rhs := (boosted_rhs nat 0 Nat.add Nat.mul Nat.sub Nat.min ceil_nat ident zerob).

(** The recurrences of theorem 11. *)
Record boost_valid (p : set nat) : Prop := {
  boost_set :> well_formed p;
  boosted_R : forall i, i < count p -> n_boosted_rhs p i <= R p i;
  boosted_F : forall i s, i < count p -> In s (segs p i) ->
    R p i <= length_bound s \/ n_boosted_window_rhs p i s (length_bound s) <= length_bound s }.

Section Boost.
  Variable p : set nat.
  Variable s : schedule.
  Hypothesis V : well_formed p.
  Hypothesis M : gpus_obey p s.
  Hypothesis MB : boost_obeys p s.
  Hypothesis VB : boost_valid p.

  Notation task i := (i < count p).
  Notation arr := (arrival s).
  Notation ph := (phase s).
  Notation run_job := (run_job p s).
  Notation device_job := (device_job p s).
  Notation held_run_job := (held_run_job p s).
  Notation update_job := (update_job p s).
  Notation whole_job := (whole_job p s).
  Notation outranks := (outranks p).
  Notation late := (late p).

  (** ** Host parts: what the core executes of a thread in a window, boosted *)

  Definition in_win i k t := match ph i k t with Win _ => true | _ => false end.

  Lemma in_win_spec i k t : in_win i k t = true <-> in_some_window s i k t.
  Proof.
    unfold in_win, in_some_window. destruct (ph i k t); split; intro H; try discriminate; try (destruct H;
      discriminate);
      eauto.
  Qed.

  Definition host_job h t := match run_job h t with Some m => if in_win h m t then Some m else None | None => None end.

  Lemma host_job_spec h m t : host_job h t = Some m <-> run_job h t = Some m /\ in_some_window s h m t.
  Proof.
    unfold host_job. destruct (run_job h t) as [n |]; [| split; [discriminate | intros [H _]; discriminate]].
    destruct (in_win h n t) eqn:E; split.
    - intro H. injection H as ->. split; auto. apply in_win_spec; auto.
    - intros [H _]. auto.
    - discriminate.
    - intros [H Hw]. injection H as ->. apply in_win_spec in Hw. congruence.
  Qed.

  Lemma host_count h m a b : task h -> cnt (is_job (host_job h) m) a b <= n_Gm p h.
  Proof.
    intro Hh. eapply Nat.le_trans; [| apply (host_total p s M h m a b Hh)].
    apply cnt_list. intros t _ H. apply is_job_spec, host_job_spec in H. destruct H as [Hr [j Hj]].
    exists j. split. apply in_seq. destruct (window_uses p s M _ _ _ _ Hh Hj). lia.
    unfold host_unit. apply run_job_spec, runs_spec in Hr. rewrite Hr. apply in_window_spec. auto.
  Qed.

  (** Device part and updates. *)
  Definition rest_job h t := match device_job h t with Some m => Some m | None => update_job h t end.

  Lemma rest_count h m a b : task h -> cnt (is_job (rest_job h) m) a b <= n_device_updates p h.
  Proof.
    intro Hh. unfold device_updates.
    eapply Nat.le_trans; [apply (cnt_mono _ (fun t => is_job (device_job h) m t || is_job (update_job h) m t)) |].
    - intros t _ H. apply is_job_spec in H. unfold rest_job in H. rewrite orb_true_iff, !is_job_spec.
      destruct (device_job h t); auto.
    - eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono. apply device_count; auto. apply update_count; auto.
  Qed.

  (** A window of one job: host and device part, and its updates. *)
  Definition window_job h t := match host_job h t with Some m => Some m | None => rest_job h t end.

  Lemma window_count h m a b : task h -> cnt (is_job (window_job h) m) a b <= n_hold p h.
  Proof.
    intro Hh. unfold hold. pose proof (host_count h m a b Hh). pose proof (rest_count h m a b Hh) as H2.
    unfold device_updates in H2.
    eapply Nat.le_trans; [apply (cnt_mono _ (fun t => is_job (host_job h) m t || is_job (rest_job h) m t)) |].
    - intros t _ H'. apply is_job_spec in H'. unfold window_job in H'. rewrite orb_true_iff, !is_job_spec.
      destruct (host_job h t); auto.
    - eapply Nat.le_trans. apply cnt_or. lia.
  Qed.

  (** ** Openings *)

  (** An update that lemma 3 charges to window j itself is in progress. *)
  Definition opening i k j t :=
    match update s (gpu p i) t with Some c => c <=? opens s i k j | None => false end.
  (** The end of the opening. *)
  Definition ready_at i k j := opens s i k j + cnt (opening i k j) (opens s i k j) (closes s i k j).

  Lemma opening_before i k j t u : opening i k j t = true -> opens s i k j <= u <= t -> opening i k j u = true.
  Proof.
    unfold opening. destruct (update s (gpu p i) t) as [c |] eqn:E; try discriminate. intros Hc Hu.
    apply Nat.leb_le in Hc. destruct (update_at_once _ _ MB _ t c u E ltac:(lia)) as [c' [Hu' Hc']].
    rewrite Hu'. apply Nat.leb_le. lia.
  Qed.

  Lemma opening_over i k j t : task i -> ph i k t = Win j -> opening i k j t = false -> ready_at i k j <= t.
  Proof.
    intros Hi Hp Ho. pose proof (window_open p s M _ _ _ _ Hi Hp) as Hw. unfold ready_at.
    pose proof (cnt_inside_length (opening i k j) (opens s i k j) (closes s i k j) (opens s i k j) t) as H.
    assert (cnt (opening i k j) (opens s i k j) (closes s i k j)
      <= min (closes s i k j) t - max (opens s i k j) (opens s i k j)).
    { apply H. intros u Hu Hou. split. lia. destruct (le_lt_dec t u); auto.
      rewrite (opening_before i k j u t Hou) in Ho; [discriminate | lia]. }
    lia.
  Qed.

  Lemma opening_not_over i k j t : task i -> ph i k t = Win j -> ready_at i k j <= t -> opening i k j t = false.
  Proof.
    intros Hi Hp Hr. destruct (opening i k j t) eqn:E; auto. exfalso.
    pose proof (window_open p s M _ _ _ _ Hi Hp) as Hw. unfold ready_at in Hr.
    rewrite (cnt_split _ (opens s i k j) (S t) (closes s i k j)) in Hr by lia.
    rewrite (cnt_all (opening i k j) (opens s i k j) (S t)) in Hr. lia.
    intros u Hu. apply (opening_before i k j t); auto. lia.
  Qed.

  Lemma opening_own i k j t : task i -> ph i k t = Win j -> opening i k j t = true ->
    update_is s (gpu p i) (last_change s (gpu p i) (opens s i k j)) t = true \/
    update_is s (gpu p i) (in_flight s (gpu p i) (opens s i k j)) t = true.
  Proof.
    intros Hi Hp Ho. unfold opening in Ho. destruct (update s (gpu p i) t) as [c |] eqn:E; try discriminate.
    apply Nat.leb_le in Ho. pose proof (window_open p s M _ _ _ _ Hi Hp) as Hw.
    unfold update_is. rewrite E, !Nat.eqb_eq. apply (update_of_before p s M _ _ _ t); auto. lia.
  Qed.

  (** Before te no window has exceeded its length, its opening left out. *)
  Definition windows_short te := forall h m j t, task h -> t < te -> ph h m t = Win j ->
    t < ready_at h m j + length_bound (segment_at p h j).

  (** A window of job k of i is open at t and its opening is over. *)
  Definition inside i k t :=
    existsb (fun j => in_window s i k j t && negb (opening i k j t)) (seq 0 (segments p i)).
  Definition restricted i k (f : nat -> option nat) t := if inside i k t then f t else None.

  Lemma inside_intro i k j t : task i -> ph i k t = Win j -> opening i k j t = false -> inside i k t = true.
  Proof.
    intros Hi Hp Ho. apply existsb_exists. exists j. split. apply in_seq.
    destruct (window_uses p s M _ _ _ _ Hi Hp). lia. rewrite Ho. apply in_window_spec in Hp. rewrite Hp. reflexivity.
  Qed.

  Section Until.
    Variable te : nat.
    Hypothesis K : in_time p s te.
    Hypothesis KW : windows_short te.

    Lemma host_in h m t : t < te -> host_job h t = Some m -> arr h m <= t < arr h m + R p h.
    Proof. intros Ht H. apply host_job_spec in H. apply (run_in p s M te K); tauto. Qed.

    Lemma device_in h m t : t < te -> device_job h t = Some m -> arr h m <= t < arr h m + R p h.
    Proof. intros Ht H. apply device_job_spec in H. destruct H as [j [H _]]. apply (held_in p s M te K h m j); auto.
      Qed.

    Lemma rest_in h m t : t < te -> rest_job h t = Some m -> arr h m <= t < arr h m + late h.
    Proof.
      intros Ht H. unfold rest_job in H. destruct (device_job h t) eqn:E.
      - injection H as ->. destruct (device_in h m t Ht E). unfold late. lia.
      - apply (update_in p s M te K); auto.
    Qed.

    Lemma window_in h m t : t < te -> window_job h t = Some m -> arr h m <= t < arr h m + late h.
    Proof.
      intros Ht H. unfold window_job in H. destruct (host_job h t) eqn:E.
      - injection H as ->. destruct (host_in h m t Ht E). unfold late. lia.
      - apply rest_in; auto.
    Qed.

    (** Lemma 2 for an interval, and for the windows of a job without their openings. *)
    Lemma rate h f L v a b : task h -> v <= L -> b <= te ->
      (forall t m, t < te -> f t = Some m -> arr h m <= t < arr h m + L) ->
      (forall m a b, b <= te -> cnt (is_job f m) a b <= v) ->
      cnt (is_some f) a b <= ceil_nat (b - a + (L - v)) (T p h) * v.
    Proof.
      intros Hh Hv Hb Hin Hw.
      apply (work_at_rate_one (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh)); auto.
      intros. apply Hin; auto. lia.
    Qed.

    Lemma restricted_some i k f t : is_some (restricted i k f) t = true -> is_some f t = true /\ inside i k t = true.
    Proof. unfold is_some, restricted. destruct (inside i k t); try discriminate. auto. Qed.

    Lemma rate_in_windows i k h f L v a b : task i -> task h -> v <= L -> b <= te ->
      (forall t m, t < te -> f t = Some m -> arr h m <= t < arr h m + L) ->
      (forall m a b, b <= te -> cnt (is_job f m) a b <= v) ->
      cnt (is_some (restricted i k f)) a b <=
        total (segs p i) (fun g => ceil_nat (length_bound g + (L - v)) (T p h)) * v.
    Proof.
      intros Hi Hh Hv Hb Hin Hw. set (F := fun g : segment nat => ceil_nat (length_bound g + (L - v)) (T p h)).
      eapply Nat.le_trans.
      - apply (cnt_list _ (seq 0 (segments p i)) (fun j t => is_some f t && (in_window s i k j t
        && negb (opening i k j t)))).
        intros t Ht H. apply restricted_some in H. destruct H as [Hs H]. apply existsb_exists in H.
        destruct H as [j [Hj H]]. exists j. rewrite Hs, H. auto.
      - rewrite <- (total_nth (segs p i) no_segment F). rewrite Nat.mul_comm, <- total_mul.
        apply total_mono. intros j _. change (nth j (segs p i) no_segment) with (segment_at p i j).
        rewrite Nat.mul_comm. set (o := ready_at i k j). set (l := length_bound (segment_at p i j)).
        eapply Nat.le_trans; [apply (cnt_inside _ a b o (o + l)) |].
        + intros t Ht H. rewrite !andb_true_iff, negb_true_iff in H. destruct H as [_ [Hp Ho]].
          apply in_window_spec in Hp. split. apply opening_over; auto. apply KW; auto. lia.
        + eapply Nat.le_trans; [apply (cnt_within _ _ _ o (min b (o + l))); lia |].
          eapply Nat.le_trans; [apply (cnt_mono _ (is_some f)) |].
          { intros t _ H. apply andb_true_iff in H. tauto. }
          eapply Nat.le_trans; [apply (rate h f L v o (min b (o + l))); auto; lia |].
          unfold F. fold l. apply Nat.mul_le_mono_r, ceil_nat_mono. lia.
    Qed.

    (** Both: N. *)
    Lemma rate_both i k h f L v a b : task i -> task h -> v <= L -> b <= te ->
      (forall t m, t < te -> f t = Some m -> arr h m <= t < arr h m + L) ->
      (forall m a b, b <= te -> cnt (is_job f m) a b <= v) ->
      cnt (is_some (restricted i k f)) a b <= n_number_of p i (b - a) L v h * v.
    Proof.
      intros Hi Hh Hv Hb Hin Hw. unfold number_of. rewrite <- Nat.mul_min_distr_r. apply Nat.min_glb.
      - eapply Nat.le_trans; [apply (cnt_mono _ (is_some f)) |].
        { intros t _ H. apply restricted_some in H. tauto. }
        apply (rate h f L v); auto.
      - apply (rate_in_windows i k h f L v); auto.
    Qed.

    (** ** Stops: boosted work of c runs while y holds its GPU and no update is in progress *)

    Definition stopped y m c t :=
      match holder s (gpu p y) t with
      | Some (x, m', _) => Nat.eqb x y && Nat.eqb m' m && quiet s (gpu p y) t && is_some (host_job c) t
      | None => false
      end.
    Definition stop_job y m c t := if stopped y m c t then host_job c t else None.

    Lemma stopped_holder y m c t : stopped y m c t = true ->
      exists j, holder s (gpu p y) t = Some (y, m, j) /\ update s (gpu p y) t = None.
    Proof.
      unfold stopped. destruct (holder s (gpu p y) t) as [[[x m'] j] |]; try discriminate.
      rewrite !andb_true_iff, !Nat.eqb_eq, quiet_spec. intros [[[-> ->] Hq] _]. eauto.
    Qed.

    Lemma stopped_some y m c t : stopped y m c t = true -> is_some (stop_job y m c) t = true.
    Proof.
      intro H. unfold is_some, stop_job. rewrite H. unfold stopped in H.
      destruct (holder s (gpu p y) t) as [[[x m'] j] |]; try discriminate. apply andb_true_iff in H. apply H.
    Qed.

    Lemma stop_in y m c n t : t < te -> stop_job y m c t = Some n -> arr c n <= t < arr c n + R p c.
    Proof. intros Ht H. unfold stop_job in H. destruct (stopped y m c t); try discriminate. apply host_in; auto. Qed.

    Lemma stop_count y m c n a b : task c -> cnt (is_job (stop_job y m c) n) a b <= n_Gm p c.
    Proof.
      intro Hc. eapply Nat.le_trans; [| apply (host_count c n a b Hc)]. apply cnt_mono. intros t _ H.
      apply is_job_spec in H. apply is_job_spec. unfold stop_job in H. destruct (stopped y m c t); congruence.
    Qed.

    Lemma Gm_at_most_R c : task c -> n_Gm p c <= R p c.
    Proof. intro Hc. pose proof (R_contains _ V c Hc). lia. Qed.

    Lemma stops_in y m c a b : task c -> b <= te ->
      cnt (stopped y m c) a b <= ceil_nat (b - a + (R p c - n_Gm p c)) (T p c) * n_Gm p c.
    Proof.
      intros Hc Hb. eapply Nat.le_trans; [apply (cnt_mono _ (is_some (stop_job y m c))) |].
      { intros t _. apply stopped_some. }
      apply rate; auto. apply Gm_at_most_R; auto.
      intros. apply (stop_in y m); auto. intros. apply stop_count; auto.
    Qed.

    Lemma stops_of_windows y m c a b : task y -> task c -> b <= te ->
      cnt (stopped y m c) a b <= n_in_windows p y (R p c) (n_Gm p c) c * n_Gm p c.
    Proof.
      intros Hy Hc Hb. eapply Nat.le_trans;
        [| apply (rate_in_windows y m c (stop_job y m c) (R p c) (n_Gm p c) a b); auto].
      - apply cnt_mono. intros t _ H. unfold is_some, restricted.
        destruct (stopped_holder _ _ _ _ H) as [j [Hh Hu]]. destruct (holder_facts p s M _ _ _ _ _ Hh) as [_ [_ Hp]].
        rewrite (inside_intro y m j t Hy Hp). apply stopped_some. auto. unfold opening. rewrite Hu. reflexivity.
      - apply Gm_at_most_R; auto.
      - intros. apply (stop_in y m); auto.
      - intros. apply stop_count; auto.
    Qed.

    Lemma stops_of_job y m c a b : task y -> task c -> b <= te ->
      cnt (stopped y m c) a b <= n_number p (R p y) (R p c) (n_Gm p c) c * n_Gm p c.
    Proof.
      intros Hy Hc Hb. eapply Nat.le_trans; [apply (cnt_inside _ a b (arr y m) (arr y m + R p y)) |].
      - intros t Ht H. destruct (stopped_holder _ _ _ _ H) as [j [Hh _]]. apply (held_in p s M te K y m j); auto. lia.
      - eapply Nat.le_trans. apply stops_in; auto. lia. apply Nat.mul_le_mono_r, ceil_nat_mono. lia.
    Qed.

    (** k_yc Y_c *)
    Lemma stops_bound y m c a b : task y -> task c -> b <= te -> cnt (stopped y m c) a b <= n_boosted_stop_time p y c.
    Proof.
      intros. unfold boosted_stop_time. rewrite <- Nat.mul_min_distr_r. apply Nat.min_glb.
      apply stops_of_windows; auto. apply stops_of_job; auto.
    Qed.

    (** ** Windows of other cores: (d) and (e) *)

    (** [sel c]: the stops by c are counted once for all windows, not window by window. *)
    Variable sel : nat -> bool.

    Definition unselected y := filter (fun c => negb (sel c)) (filter (n_stops p y) (tasks nat p)).

    Lemma in_unselected y c : In c (unselected y) <-> task c /\ n_stops p y c = true /\ sel c = false.
    Proof. unfold unselected. rewrite !filter_In, in_tasks, negb_true_iff. tauto. Qed.

    Definition stopped_job y t : option nat :=
      match holder s (gpu p y) t with
      | Some (x, m, _) => if Nat.eqb x y && existsb (fun c => stopped y m c t) (unselected y) then Some m else None
      | None => None
      end.

    Lemma stopped_job_spec y m t : stopped_job y t = Some m -> exists c, In c (unselected y) /\ stopped y m c t = true.
    Proof.
      unfold stopped_job. destruct (holder s (gpu p y) t) as [[[x m'] j] |] eqn:E; try discriminate.
      destruct (Nat.eqb x y && _) eqn:Ec; try discriminate. intro H. injection H as ->.
      apply andb_true_iff in Ec. destruct Ec as [_ Ec]. apply existsb_exists in Ec. auto.
    Qed.

    Definition remote_job y t :=
      match device_job y t with
      | Some m => Some m
      | None =>
        match held_run_job y t with
        | Some m => Some m
        | None => match update_job y t with Some m => Some m | None => stopped_job y t end
        end
      end.

    Lemma remote_in y m t : t < te -> remote_job y t = Some m -> arr y m <= t < arr y m + late y.
    Proof.
      intros Ht H. unfold remote_job in H. destruct (device_job y t) eqn:E1.
      { injection H as ->. destruct (device_in y m t Ht E1). unfold late. lia. }
      destruct (held_run_job y t) eqn:E2.
      { injection H as ->. apply held_run_job_spec in E2. destruct E2 as [j [Hj _]].
        destruct (held_in p s M te K _ _ _ _ Ht Hj). unfold late. lia. }
      destruct (update_job y t) eqn:E3.
      { injection H as ->. apply (update_in p s M te K); auto. }
      apply stopped_job_spec in H. destruct H as [c [_ H]]. apply stopped_holder in H.
      destruct H as [j [Hh _]]. destruct (held_in p s M te K _ _ _ _ Ht Hh). unfold late. lia.
    Qed.

    Lemma remote_count y m a b : task y -> b <= te ->
      cnt (is_job (remote_job y) m) a b <= n_hold p y + total (unselected y) (n_boosted_stop_time p y).
    Proof.
      intros Hy Hb. unfold hold.
      pose proof (device_count p s M y m a b Hy). pose proof (held_run_count p s M y m a b Hy).
      pose proof (update_count p s M y m a b Hy).
      assert (Hs : cnt (is_job (stopped_job y) m) a b <= total (unselected y) (n_boosted_stop_time p y)).
      { eapply Nat.le_trans. apply (cnt_list _ (unselected y) (fun c => stopped y m c)).
        - intros t Ht Hj. apply is_job_spec, stopped_job_spec in Hj. auto.
        - apply total_mono. intros c Hc. apply in_unselected in Hc. apply stops_bound; tauto. }
      eapply Nat.le_trans.
      - apply (cnt_mono _ (fun t => is_job (device_job y) m t || (is_job (held_run_job y) m t
          || (is_job (update_job y) m t || is_job (stopped_job y) m t)))).
        intros t _ Hj. apply is_job_spec in Hj. unfold remote_job in Hj. rewrite !orb_true_iff, !is_job_spec.
        destruct (device_job y t); auto. destruct (held_run_job y t); auto. destruct (update_job y t); auto.
      - eapply Nat.le_trans. apply cnt_or. eapply Nat.le_trans. apply Nat.add_le_mono_l, cnt_or.
        eapply Nat.le_trans. apply Nat.add_le_mono_l, Nat.add_le_mono_l, cnt_or. lia.
    Qed.

    Definition remote_work y := n_hold p y + total (unselected y) (n_boosted_stop_time p y).

    Lemma hold_at_most_late y : task y -> n_hold p y <= late y.
    Proof. intro Hy. pose proof (whole_at_most_R _ V y Hy) as H. unfold whole in H. unfold late. lia. Qed.

    (** A job with more than R + 2 eps of hold and stops is cut there, which only makes the count smaller. *)
    Lemma remote_cut y : task y ->
      n_hold p y <= min (remote_work y) (late y) /\ min (remote_work y) (late y) <= late y /\
      (forall m a b, b <= te -> cnt (is_job (remote_job y) m) a b <= min (remote_work y) (late y)).
    Proof.
      intro Hy. pose proof (hold_at_most_late y Hy). unfold remote_work. repeat split; try lia.
      intros m a b Hb. apply Nat.min_glb. apply remote_count; auto.
      eapply Nat.le_trans; [apply (cnt_inside_length _ a b (arr y m) (arr y m + late y)) | lia].
      intros t Ht Hj. apply is_job_spec in Hj. apply remote_in; auto. lia.
    Qed.

    Lemma remote_bound y a b : task y -> b <= te ->
      cnt (is_some (remote_job y)) a b <= n_number p (b - a) (n_with_update p y) (n_hold p y) y * remote_work y.
    Proof.
      intros Hy Hb. destruct (remote_cut y Hy) as [H1 [H2 H3]]. set (v := min (remote_work y) (late y)) in *.
      eapply Nat.le_trans; [apply (rate y (remote_job y) (late y) v); auto; intros; apply remote_in; auto |].
      unfold number. change (n_with_update p y) with (late y). apply Nat.mul_le_mono. apply ceil_nat_mono. lia.
      unfold v. lia.
    Qed.

    Lemma remote_bound_inside i k y a b : task i -> task y -> b <= te ->
      cnt (is_some (restricted i k (remote_job y))) a b <=
        n_number_of p i (b - a) (n_with_update p y) (n_hold p y) y * remote_work y.
    Proof.
      intros Hi Hy Hb. destruct (remote_cut y Hy) as [H1 [H2 H3]]. set (v := min (remote_work y) (late y)) in *.
      eapply Nat.le_trans; [apply (rate_both i k y (remote_job y) (late y) v); auto; intros; apply remote_in; auto |].
      change (n_with_update p y) with (late y). apply Nat.mul_le_mono; [| unfold v; lia].
      unfold number_of, number_in_windows, number.
      apply Nat.min_le_compat. apply ceil_nat_mono. lia.
      change (total (segs p i) (fun g => ceil_nat (length_bound g + (late y - v)) (T p y)) <=
        total (segs p i) (fun g => ceil_nat (length_bound g + (late y - n_hold p y)) (T p y))).
      apply total_mono. intros g _. apply ceil_nat_mono. lia.
    Qed.

    Lemma host_bound c a b : task c -> b <= te ->
      cnt (is_some (host_job c)) a b <= n_number p (b - a) (R p c) (n_Gm p c) c * n_Gm p c.
    Proof.
      intros Hc Hb. apply rate; auto. apply Gm_at_most_R; auto. intros. apply host_in; auto.
      intros. apply host_count; auto.
    Qed.

    Lemma host_bound_inside i k c a b : task i -> task c -> b <= te ->
      cnt (is_some (restricted i k (host_job c))) a b <= n_number_of p i (b - a) (R p c) (n_Gm p c) c * n_Gm p c.
    Proof.
      intros Hi Hc Hb. apply rate_both; auto. apply Gm_at_most_R; auto. intros. apply host_in; auto.
      intros. apply host_count; auto.
    Qed.

    (** ** The classes inside a window *)

    Definition selected := filter sel (tasks nat p).

    Lemma boosted_above i h m k t : task i -> task h -> h <> i -> core p h = core p i -> in_some_window s i k t ->
      (in_some_window s h m t /\ ~ in_some_window s i k t) \/
        ((prio p i <= prio p h)%N /\ (in_some_window s i k t -> in_some_window s h m t)) ->
      n_above p i h = true /\ in_some_window s h m t.
    Proof.
      intros Hi Hh Hne Hc Hw [[_ H] | [Hpr Hwin]]. contradiction. split; auto. apply above_spec. split; auto.
      pose proof (cpu_distinct _ V i h Hi Hh ltac:(auto) ltac:(auto)). lia.
    Qed.

    Lemma inside_classes i k j t : task i -> ph i k t = Win j -> opening i k j t = false ->
      (host_unit p s i k j t = true \/ device_unit p s i k j t = true) \/
      (exists h, In h (n_hpp p i) /\ n_uses p h = true /\ is_some (host_job h) t = true) \/
      (exists h, In h (n_hpp p i) /\ n_same p i h = true /\ is_some (rest_job h) t = true) \/
      (exists y, In y (n_rem p i) /\ is_some (remote_job y) t = true) \/
      (exists c, In c selected /\ is_some (host_job c) t = true).
    Proof.
      clear K KW te. intros Hi Hp Ho. destruct (update s (gpu p i) t) as [c |] eqn:Hu.
      { (* D: an update that is charged to a window that outranks i *)
        destruct (update_cause _ _ M _ _ _ Hu) as [Hct Hc]. unfold opening in Ho. rewrite Hu in Ho.
        apply Nat.leb_gt in Ho. pose proof (window_open p s M _ _ _ _ Hi Hp) as Hw.
        destruct (change_owner p s V M i k j c Hi) as [x [m [Hox Hr]]]; auto.
        { apply (open_window p s M _ _ _ c _ Hi Hp). lia. }
        { destruct Hc as [-> |]; auto. lia. }
        destruct Hr as [Hx [Hne [Hs Hlt]]]. pose proof (same_gpu_eq _ _ _ Hs) as Hg.
        assert (Hj : update_job x t = Some m).
        { unfold Window.update_job. rewrite Hg, Hu, Hox, Nat.eqb_refl. reflexivity. }
        destruct (N.eq_dec (core p x) (core p i)) as [E | E].
        - right. right. left. exists x. split. apply outranks_local; auto. repeat split; auto. split; auto.
          unfold is_some, rest_job. rewrite Hj. destruct (device_job x t); auto.
        - right. right. right. left. exists x. split. apply outranks_remote; auto. repeat split; auto.
          unfold is_some, remote_job. rewrite Hj. destruct (device_job x t); auto. destruct (held_run_job x t); auto. }
      destruct (holder_or_outranked p s V M i k t j Hi Hp) as [y [m [j' [Hh Hr]]]].
      assert (Hy : task y /\ gpu p y = gpu p i /\ ph y m t = Win j') by (apply (holder_facts p s M _ _ _ _ _ Hh)).
      destruct Hy as [Hy [Hg Hpy]].
      assert (Hq : quiet s (gpu p y) t = true) by (apply quiet_spec; congruence).
      destruct (device_ready s y m t) eqn:Hd.
      { assert (Hj : device_job y t = Some m).
        { unfold Window.device_job. rewrite Hg, Hh, <- Hg, Nat.eqb_refl, Hq, Hd. reflexivity. }
        destruct Hr as [[-> [-> ->]] | Hr].
        - left. right. apply device_job_spec in Hj. destruct Hj as [j2 [Hj2 Hj3]]. rewrite Hh in Hj2. congruence.
        - destruct (N.eq_dec (core p y) (core p i)) as [E | E].
          + right. right. left. exists y. split. apply outranks_local; auto. split. apply Hr.
            unfold is_some, rest_job. rewrite Hj. reflexivity.
          + right. right. right. left. exists y. split. apply outranks_remote; auto.
            unfold is_some, remote_job. rewrite Hj. reflexivity. }
      assert (Hhost : host_ready s y m t = true) by (destruct (window_left _ _ M y m j' t Hy Hpy); auto; congruence).
      assert (Hwy : in_some_window s y m t) by (exists j'; auto).
      destruct (boost_served _ _ MB y m t Hy) as [c [n [He Hpr]]]. { right. exists j'. auto. }
      destruct (exec_wants _ _ M _ _ _ _ He) as [Hc [Hcore Hcw]].
      destruct (Nat.eq_dec c y) as [-> | Hcy].
      { (* the core serves the holder *)
        assert (n = m). { apply (one_job p s M y n m t); auto. apply wants_phase; auto. congruence. } subst n.
        assert (Hrun : runs p s y m t = true) by (apply runs_spec; auto).
        destruct Hr as [[-> [-> ->]] | Hr].
        - left. left. unfold host_unit. rewrite Hrun. apply in_window_spec. auto.
        - destruct (N.eq_dec (core p y) (core p i)) as [E | E].
          + right. left. exists y. split. apply outranks_local; auto. split. apply (window_uses p s M _ _ _ _ Hy Hpy).
            assert (Hj : host_job y t = Some m). { apply host_job_spec. split; auto. apply run_job_spec; auto. }
            unfold is_some. rewrite Hj. reflexivity.
          + right. right. right. left. exists y. split. apply outranks_remote; auto.
            unfold is_some, remote_job. destruct (device_job y t); auto. unfold Window.held_run_job.
            rewrite Hg, Hh, Nat.eqb_refl, Hrun. reflexivity. }
      (* F, G2: the core serves boosted work of c, which is above y *)
      destruct Hpr as [| Hpr]; [contradiction |].
      destruct (boosted_above y c n m t Hy Hc Hcy Hcore Hwy Hpr) as [Ha Hwc].
      assert (Hj : host_job c t = Some n).
      { apply host_job_spec. split; auto. apply run_job_spec. congruence. }
      assert (Hsome : is_some (host_job c) t = true) by (unfold is_some; rewrite Hj; reflexivity).
      destruct Hwc as [jc Hjc]. destruct (window_uses p s M _ _ _ _ Hc Hjc) as [Huc _].
      destruct (N.eq_dec (core p y) (core p i)) as [E | E].
      { right. left. exists c. split; [| auto]. apply in_hpp. split; auto.
        destruct Hr as [[-> _] | Hr]; auto. pose proof (outranks_local _ V i y Hi Hr E) as Hin. apply in_hpp in Hin.
        destruct Hin as [_ Hin]. apply above_spec in Hin. apply above_spec in Ha. apply above_spec.
        destruct Hin, Ha. split. congruence. lia. }
      destruct Hr as [[-> _] | Hr]; [congruence |].
      (* a stop *)
      assert (Hgc : gpu p c <> gpu p y).
      { intro Eg. destruct (holder_or_outranked p s V M c n t jc Hc Hjc) as [z [m2 [j2 [Hz Hr2]]]].
        rewrite Eg, Hg, Hh in Hz. injection Hz as <- <- <-.
        destruct Hr2 as [[-> _] | [_ [Hne [Hs Hlt]]]]; [congruence |].
        assert (Hs' : n_same p y c = true).
        { apply same_intro; auto. apply (same_uses p c y); auto. }
        apply above_spec in Ha. assert ((gprio p y < gprio p c)%N) by (apply (same_order _ V y c); auto; tauto). lia. }
      destruct (sel c) eqn:Hsel.
      - right. right. right. right. exists c. split; auto. unfold selected. apply filter_In. split; auto.
        apply in_tasks; auto.
      - right. right. right. left. exists y. split. apply outranks_remote; auto.
        unfold is_some, remote_job. destruct (device_job y t); auto. destruct (held_run_job y t); auto.
        destruct (update_job y t); auto. unfold stopped_job. rewrite Hg, Hh, Nat.eqb_refl. simpl.
        assert (Hex : existsb (fun c0 => stopped y m c0 t) (unselected y) = true); [| rewrite Hex; reflexivity].
        apply existsb_exists. exists c. split.
        + apply in_unselected. split; auto. split; auto. unfold stops. rewrite Ha, Huc. simpl.
          apply negb_true_iff, N.eqb_neq. auto.
        + unfold stopped. rewrite Hg, Hh, !Nat.eqb_refl. rewrite <- Hg, Hq, Hsome. reflexivity.
    Qed.

    (** ** (a'), (b') *)

    Lemma device_updates_at_most_late h : task h -> n_device_updates p h <= late h.
    Proof. intro Hh. pose proof (R_contains _ V h Hh). unfold device_updates, Window.late. lia. Qed.

    Lemma rest_bound h a b : task h -> b <= te ->
      cnt (is_some (rest_job h)) a b <= n_number p (b - a) (n_with_update p h) (n_device_updates p h) h
        * n_device_updates p h.
    Proof.
      intros Hh Hb. apply (rate h (rest_job h) (late h)); auto. apply device_updates_at_most_late; auto.
      intros; apply rest_in; auto. intros; apply rest_count; auto.
    Qed.

    Definition window_class i h t :=
      (n_uses p h && is_some (host_job h) t) || (n_same p i h && is_some (rest_job h) t).

    Lemma window_class_bound i h a b : task h -> b <= te ->
      cnt (window_class i h) a b <= n_local_in_window p i h (b - a).
    Proof.
      intros Hh Hb. unfold local_in_window. destruct (n_uses p h) eqn:Hu.
      - assert (Hhost : forall Q, cnt (fun t => is_some (host_job h) t || Q t) a b <=
          n_number p (b - a) (R p h) (n_Gm p h) h * n_Gm p h + cnt Q a b).
        { intro Q. eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono_r. apply host_bound; auto. }
        destruct (n_same p i h) eqn:Hs.
        + apply Nat.min_glb.
          * eapply Nat.le_trans; [apply (cnt_mono _ (is_some (window_job h))) |].
            { intros t _ H. unfold window_class in H. rewrite Hu, Hs in H. simpl in H.
              unfold is_some, window_job in *. destruct (host_job h t); auto. }
            apply (rate h (window_job h) (late h)); auto. apply hold_at_most_late; auto.
            intros; apply window_in; auto. intros; apply window_count; auto.
          * eapply Nat.le_trans; [apply (cnt_mono _ (fun t => is_some (host_job h) t || is_some (rest_job h) t)) |].
            { intros t _ H. unfold window_class in H. rewrite Hu, Hs in H. auto. }
            eapply Nat.le_trans. apply Hhost. apply Nat.add_le_mono_l. apply rest_bound; auto.
        + eapply Nat.le_trans; [apply (cnt_mono _ (is_some (host_job h))) |].
          { intros t _ H. unfold window_class in H. rewrite Hu, Hs, orb_false_r in H. auto. }
          apply host_bound; auto.
      - rewrite cnt_none; auto. intros t _. unfold window_class.
        assert (Hs : n_same p i h = false) by (unfold same_gpu; rewrite Hu, andb_false_r; reflexivity).
        rewrite Hu, Hs. reflexivity.
    Qed.

    (** The classes E to G and D of the proof of theorem 11, for an interval inside a window. *)
    Lemma window_sum i k j a b : task i -> b <= te ->
      (forall t, a <= t < b -> ph i k t = Win j /\ opening i k j t = false) ->
      b - a <= cnt (host_unit p s i k j) a b + cnt (device_unit p s i k j) a b
        + total (n_hpp p i) (fun h => n_local_in_window p i h (b - a))
        + (total (n_rem p i) (fun y => n_number p (b - a) (n_with_update p y) (n_hold p y) y * remote_work y)
           + total selected (fun c => n_number p (b - a) (R p c) (n_Gm p c) c * n_Gm p c)).
    Proof.
      intros Hi Hb Hopen.
      pose (Ps := host_unit p s i k j :: device_unit p s i k j :: map (window_class i) (n_hpp p i)
        ++ map (fun y => is_some (remote_job y)) (n_rem p i) ++ map (fun c => is_some (host_job c)) selected).
      assert (Hall : forall t, a <= t < b -> exists P, In P Ps /\ P t = true).
      { intros t Ht. destruct (Hopen t Ht) as [Hp Ho].
        destruct (inside_classes i k j t Hi Hp Ho) as [[H | H] | [[h [Hh [Hu H]]] | [[h [Hh [Hs H]]] | [[y [Hy H]] |
          [c [Hc H]]]]]].
        - exists (host_unit p s i k j). split; auto. left. reflexivity.
        - exists (device_unit p s i k j). split; auto. right. left. reflexivity.
        - exists (window_class i h). split. right. right. apply in_or_app. left. apply in_map. auto.
          unfold window_class. rewrite Hu, H. reflexivity.
        - exists (window_class i h). split. right. right. apply in_or_app. left. apply in_map. auto.
          unfold window_class. rewrite Hs, H. apply orb_true_r.
        - exists (is_some (remote_job y)). split; auto. right. right. apply in_or_app. right. apply in_or_app. left.
          apply (in_map (fun y => is_some (remote_job y))). auto.
        - exists (is_some (host_job c)). split; auto. right. right. apply in_or_app. right. apply in_or_app. right.
          apply (in_map (fun c => is_some (host_job c))). auto. }
      pose proof (cover Ps a b Hall) as H. unfold Ps in H. simpl total in H. rewrite !total_app, !total_map in H.
      assert (H1 : total (n_hpp p i) (fun h => cnt (window_class i h) a b)
        <= total (n_hpp p i) (fun h => n_local_in_window p i h (b - a))).
      { apply total_mono. intros h Hh. apply window_class_bound; auto. apply in_hpp in Hh. tauto. }
      assert (H2 : total (n_rem p i) (fun y => cnt (is_some (remote_job y)) a b) <= total (n_rem p i) (fun y =>
        n_number p (b - a) (n_with_update p y) (n_hold p y) y * remote_work y)).
      { apply total_mono. intros y Hy. apply remote_bound; auto. apply (in_rem p i y); auto. }
      assert (H3 : total selected (fun c => cnt (is_some (host_job c)) a b) <= total selected (fun c =>
        n_number p (b - a) (R p c) (n_Gm p c) c * n_Gm p c)).
      { apply total_mono. intros c Hc. apply host_bound; auto. unfold selected in Hc. apply filter_In in Hc.
        apply in_tasks. tauto. }
      lia.
    Qed.
  End Until.

  (** (e): per c, the smaller of both counts. *)
  Definition by_window i (m : nat -> nat) c :=
    total (filter (fun y => n_stops p y c) (n_rem p i)) (fun y => m y * n_boosted_stop_time p y c).

  Lemma selection i (m once : nat -> nat) :
    let sel := fun c => once c * n_Gm p c <? by_window i m c in
    total (n_rem p i) (fun y => m y * remote_work sel y) + total (selected sel) (fun c => once c * n_Gm p c)
    = n_remote_terms p i m once.
  Proof.
    intro sel. unfold remote_terms, remote_work.
    change (total (n_rem p i) (fun y => m y * (n_hold p y + total (unselected sel y) (n_boosted_stop_time p y)))
      + total (selected sel) (fun c => once c * n_Gm p c)
      = total (n_rem p i) (fun y => m y * n_hold p y)
      + total (tasks nat p) (fun c => min (by_window i m c) (once c * n_Gm p c))).
    rewrite (total_ext (n_rem p i) _ (fun y => m y * n_hold p y
      + m y * total (unselected sel y) (n_boosted_stop_time p y))) by (intros; lia).
    rewrite total_add.
    assert (E : total (n_rem p i) (fun y => m y * total (unselected sel y) (n_boosted_stop_time p y))
      = total (tasks nat p) (fun c => if sel c then 0 else by_window i m c)).
    { rewrite (total_ext (n_rem p i) _ (fun y => total (tasks nat p) (fun c =>
        if n_stops p y c then if sel c then 0 else m y * n_boosted_stop_time p y c else 0))).
      - rewrite total_exchange. apply total_ext. intros c _. unfold by_window. rewrite total_filter.
        destruct (sel c).
        + rewrite (total_ext (n_rem p i) _ (fun _ => 0)). apply total_zero. intros y _.
          destruct (n_stops p y c); reflexivity.
        + reflexivity.
      - intros y _. rewrite <- total_mul. unfold unselected. rewrite !total_filter. apply total_ext.
        intros c _. destruct (n_stops p y c), (sel c); simpl; lia. }
    rewrite E. unfold selected. rewrite total_filter. rewrite <- Nat.add_assoc, <- total_add. f_equal.
    apply total_ext. intros c _. unfold sel. destruct (once c * n_Gm p c <? by_window i m c) eqn:El.
    - apply Nat.ltb_lt in El. lia.
    - apply Nat.ltb_ge in El. lia.
  Qed.

  Definition kept te := in_time p s te /\ windows_short te.

  Lemma kept_earlier te te' : te' <= te -> kept te -> kept te'.
  Proof. intros H [K1 K2]. split; red; intros; [apply K1 | apply K2]; auto; lia. Qed.

  (** F bounds a window from the end of its opening on. *)
  Lemma window_step t : kept t ->
    (forall h m, task h -> pending s h m t -> t < arr h m + R p h) ->
    forall h m j, task h -> ph h m t = Win j -> t < ready_at h m j + length_bound (segment_at p h j).
  Proof.
    intros K A i k j Hi Hp. set (b := ready_at i k j). set (g := segment_at p i j).
    destruct (le_lt_dec (b + length_bound g) t) as [Hle |]; auto. exfalso.
    destruct (window_uses p s M _ _ _ _ Hi Hp) as [Huse Hj].
    pose proof (window_open p s M _ _ _ _ Hi Hp) as Hopen.
    assert (Hb : opens s i k j <= b) by (unfold b, ready_at; lia).
    assert (Hwin : forall u, opens s i k j <= u <= t -> ph i k u = Win j).
    { intros u Hu. apply (open_window p s M _ _ _ u _ Hi Hp). lia. }
    destruct (boosted_F _ VB i g Hi (segment_in p i j Hj)) as [HR | HF].
    { assert (Hpb : pending s i k (opens s i k j)).
      { apply (phase_pending p s M); auto; rewrite (Hwin (opens s i k j) ltac:(lia)); congruence. }
      assert (Hpt : pending s i k t) by (apply (phase_pending p s M); auto; congruence).
      pose proof (A i k Hi Hpt). destruct Hpb as [Hr _]. pose proof (released _ _ M i k Hi). lia. }
    set (te := b + length_bound g) in *. set (L := length_bound g) in *.
    set (m := fun y => n_number p L (n_with_update p y) (n_hold p y) y).
    set (once := fun c => n_number p L (R p c) (n_Gm p c) c).
    destruct (kept_earlier t te Hle K) as [K1 K2].
    set (sel := fun c => once c * n_Gm p c <? by_window i m c).
    pose proof (window_sum te K1 K2 sel i k j b te Hi (le_n te)) as I.
    assert (EL : te - b = L) by (unfold te; lia). rewrite EL in I.
    assert (Hall : forall u, b <= u < te -> ph i k u = Win j /\ opening i k j u = false).
    { intros u Hu. assert (Hpu : ph i k u = Win j) by (apply Hwin; lia). split; auto.
      apply opening_not_over; auto. unfold b in Hu. lia. }
    specialize (I Hall). pose proof (selection i m once) as HS. cbv zeta in HS. fold sel in HS.
    assert (Hown : cnt (host_unit p s i k j) b te + cnt (device_unit p s i k j) b te < host g + device g).
    { pose proof (cnt_within (host_unit p s i k j) b te 0 t ltac:(lia) ltac:(lia)) as H1.
      pose proof (cnt_within (device_unit p s i k j) b te 0 t ltac:(lia) ltac:(lia)) as H2.
      pose proof (host_limit p s M i k j 0 t Hi) as H3. pose proof (device_limit p s M i k j 0 t Hi) as H4.
      fold g in H3, H4.
      destruct (window_left _ _ M i k j t Hi Hp) as [Hr | Hr].
      - pose proof (host_left _ _ M i k j t Hi Hp Hr) as H5. fold g in H5. lia.
      - pose proof (device_left _ _ M i k j t Hi Hp Hr) as H5. fold g in H5. lia. }
    unfold boosted_window_rhs in HF. fold m once in HF.
    change (sum nat 0 Nat.add (n_hpp p i) (fun h => n_local_in_window p i h L))
      with (total (n_hpp p i) (fun h => n_local_in_window p i h L)) in HF.
    change (total (n_rem p i) (fun y => n_number p L (n_with_update p y) (n_hold p y) y * remote_work sel y))
      with (total (n_rem p i) (fun y => m y * remote_work sel y)) in I.
    change (total (selected sel) (fun c => n_number p L (R p c) (n_Gm p c) c * n_Gm p c))
      with (total (selected sel) (fun c => once c * n_Gm p c)) in I.
    lia.
  Qed.

  (** ** Lower tasks: class B and (f) *)

  Lemma fold_least {X} (l : list X) (f : X -> nat) v0 b :
    b <= v0 -> (forall x, In x l -> b <= f x) -> b <= fold_right (fun x v => min (f x) v) v0 l.
  Proof. induction l as [| a l IH]; simpl; intros H0 H; auto. apply Nat.min_glb; auto. Qed.

  Lemma in_lower i l : In l (n_lower p i) -> task l /\ core p l = core p i /\ (prio p l < prio p i)%N.
  Proof.
    unfold lower. rewrite filter_In, in_tasks. intros [Hl H]. apply above_spec in H. destruct H. auto.
  Qed.

  Lemma first_pending h m t : task h -> pending s h m t -> exists n, n <= m /\ working s h n t.
  Proof.
    intros Hh [Hrel Hnc].
    assert (Hq : negb (complete s h m t) = true) by (rewrite Hnc; reflexivity).
    destruct (first_true (fun n => negb (complete s h n t)) m Hq) as [n [Hn [Hn1 Hn2]]].
    apply negb_true_iff in Hn1. exists n. split; auto. split. split; auto.
    - destruct (Nat.eq_dec n m) as [-> |]; auto.
      pose proof (arrivals_ordered (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh) n m ltac:(lia)).
      pose proof (released _ _ M h n Hh). pose proof (released _ _ M h m Hh).
      pose proof (R_at_most_T _ V h Hh). pose proof (R_contains _ V h Hh). lia.
    - intros k Hk. specialize (Hn2 k Hk). apply negb_false_iff in Hn2. auto.
  Qed.

  Section Job.
    Variables i k u te : nat.
    Hypothesis Hi : task i.
    Hypothesis K1 : in_time p s te.
    Hypothesis K2 : windows_short te.
    Hypothesis Hute : u <= te.
    (** From u on job k of i is at work, or no job of i is and a task above i is ready for the core. *)
    Hypothesis Hwait : forall t, u <= t < te -> ph i k t <> Idle \/
      ((exists h m, In h (n_hpp p i) /\ wants_core s h m t) /\ forall m, ph i m t = Idle).

    (** Windows of the job that have ended: the number of the stretch without an open window. *)
    Definition stretch t := total (seq 0 (segments p i))
      (fun j => if (opens s i k j <? closes s i k j) && (closes s i k j <=? t) then 1 else 0).

    Lemma stretch_most t : stretch t <= segments p i.
    Proof.
      unfold stretch. eapply Nat.le_trans. apply (total_mono _ _ (fun _ => 1)).
      intros j _. destruct (_ && _); lia. rewrite total_const, seq_length. lia.
    Qed.

    Lemma not_in_window t j : in_win i k t = false -> j < segments p i -> ~ (opens s i k j <= t < closes s i k j).
    Proof.
      intros H Hj Ho. assert (Hp : ph i k t = Win j) by (apply (phase_window _ _ M); auto).
      unfold in_win in H. rewrite Hp in H. discriminate.
    Qed.

    Lemma stretch_same t1 t2 t : t1 <= t <= t2 -> in_win i k t1 = false -> in_win i k t2 = false ->
      stretch t1 = stretch t2 -> in_win i k t = false.
    Proof.
      intros Ht H1 H2 Hs. destruct (in_win i k t) eqn:E; auto. exfalso. apply in_win_spec in E. destruct E as [j Hp].
      destruct (window_uses p s M _ _ _ _ Hi Hp) as [_ Hj]. pose proof (window_open p s M _ _ _ _ Hi Hp) as Ho.
      pose proof (not_in_window t1 j H1 Hj) as N1. pose proof (not_in_window t2 j H2 Hj) as N2.
      assert (Hlt : stretch t1 < stretch t2); [| lia]. unfold stretch. apply (total_lt _ _ _ j).
      - intros j' _. destruct (opens s i k j' <? closes s i k j'); simpl; auto.
        destruct (closes s i k j' <=? t1) eqn:E1; [| lia]. apply Nat.leb_le in E1.
        assert (E2 : (closes s i k j' <=? t2) = true) by (apply Nat.leb_le; lia). rewrite E2. lia.
      - apply in_seq. lia.
      - assert (E0 : (opens s i k j <? closes s i k j) = true) by (apply Nat.ltb_lt; lia).
        assert (E1 : (closes s i k j <=? t1) = false) by (apply Nat.leb_gt; lia).
        assert (E2 : (closes s i k j <=? t2) = true) by (apply Nat.leb_le; lia).
        rewrite E0, E1, E2. simpl. lia.
    Qed.

    (** In a stretch, without declared blocking, a thread above those below i is ready for the core. *)
    Lemma stretch_ready l t : In l (n_lower p i) -> u <= t < te -> in_win i k t = false -> B p i = 0 ->
      exists c m, task c /\ n_above p l c = true /\ wants_core s c m t.
    Proof.
      intros Hl Ht Hw HB. apply in_lower in Hl. destruct Hl as [Htl [Hc Hpr]].
      destruct (Hwait t Ht) as [H | [[h [m [Hh Hm]]] _]].
      - exists i, k. split; auto. split. apply above_spec; auto.
        destruct (ph i k t) as [| | | j] eqn:E.
        + congruence.
        + left. auto.
        + pose proof (blocking_left _ _ M i k t Hi E). lia.
        + unfold in_win in Hw. rewrite E in Hw. discriminate.
      - apply in_hpp in Hh. destruct Hh as [Hh Ha]. apply above_spec in Ha. exists h, m. split; auto. split; auto.
        apply above_spec. destruct Ha. split. congruence. lia.
    Qed.

    Definition low_job l t := if in_win i k t || in_blocked s i k t then None else host_job l t.

    Lemma low_job_spec l m t : low_job l t = Some m -> in_win i k t = false /\ host_job l t = Some m.
    Proof. unfold low_job. destruct (in_win i k t); simpl; try discriminate.
      destruct (in_blocked s i k t); try discriminate. auto. Qed.

    (** A stretch meets one window of l. *)
    Lemma stretch_window l t1 t2 m1 j1 m2 j2 : In l (n_lower p i) -> B p i = 0 -> u <= t1 -> t1 <= t2 -> t2 < te ->
      low_job l t1 = Some m1 -> ph l m1 t1 = Win j1 -> low_job l t2 = Some m2 -> ph l m2 t2 = Win j2 ->
      stretch t1 = stretch t2 -> m1 = m2 /\ j1 = j2.
    Proof.
      intros Hl HB H1 H12 H2 L1 P1 L2 P2 Hs. pose proof (in_lower i l Hl) as [Htl [Hcore Hprio]].
      apply low_job_spec in L1. apply low_job_spec in L2. destruct L1 as [W1 _], L2 as [W2 _].
      pose proof (window_open p s M _ _ _ _ Htl P2) as Ho. destruct (window_uses p s M _ _ _ _ Htl P2) as [_ Hj2].
      apply (one_window p s M l m1 m2 j1 j2 t1 Htl P1).
      destruct (le_lt_dec (opens s l m2 j2) t1) as [Hle | Hgt].
      { apply (open_window p s M _ _ _ t1 _ Htl P2). lia. }
      exfalso. destruct (boost_begin _ _ MB l m2 j2 Htl Hj2 ltac:(lia)) as [b [Hb Hnone]].
      assert (Hbt : t1 <= b <= t2) by lia.
      destruct (stretch_ready l b Hl ltac:(lia) (stretch_same t1 t2 b Hbt W1 W2 Hs) HB) as [c [m [Hc [Ha Hw]]]].
      apply (Hnone c m Hc Ha Hw).
    Qed.

    Lemma low_in l m t : t < te -> low_job l t = Some m -> arr l m <= t < arr l m + R p l.
    Proof. intros Ht H. apply low_job_spec in H. apply (host_in te K1); tauto. Qed.

    Lemma low_count l m a b : task l -> cnt (is_job (low_job l) m) a b <= n_Gm p l.
    Proof.
      intro Hl. eapply Nat.le_trans; [| apply (host_count l m a b Hl)]. apply cnt_mono. intros t _ H.
      apply is_job_spec in H. apply is_job_spec. apply low_job_spec in H. tauto.
    Qed.

    (** At most z host parts, each of at most n jobs: for every x, z x + n (what the host parts exceed x by). *)
    Lemma low_threshold l x : In l (n_lower p i) -> B p i = 0 ->
      cnt (is_some (low_job l)) u te <= S (segments p i) * x
        + ceil_nat (te - u + R p l) (T p l) * total (segs p l) (fun g => host g - x).
    Proof.
      intros Hl HB. pose proof (in_lower i l Hl) as [Htl _]. set (n := ceil_nat (te - u + R p l) (T p l)).
      destruct (jobs_in_range (arr l) (T p l) (T_positive _ V l Htl) (spaced p s M l Htl) (low_job l) u te (R p l))
        as [m1 Hrange].
      { intros t m Ht Hm. destruct (low_in l m t ltac:(lia) Hm). lia. }
      fold n in Hrange. set (ms := seq m1 n). set (js := seq 0 (segments p l)). set (qs := seq 0 (S (segments p i))).
      set (part := fun m j t => is_job (low_job l) m t && in_window s l m j t).
      set (used := fun q m j => if 0 <? cnt (fun t => part m j t && Nat.eqb (stretch t) q) u te then 1 else 0).
      assert (Hpart : forall m j t, part m j t = true -> low_job l t = Some m /\ ph l m t = Win j).
      { intros m j t H. unfold part in H. apply andb_true_iff in H. destruct H as [H1 H2]. apply is_job_spec in H1.
        apply in_window_spec in H2. auto. }
      assert (Hcount : cnt (is_some (low_job l)) u te <= total ms (fun m => total js (fun j => cnt (part m j) u te))).
      { eapply Nat.le_trans; [apply (cnt_list _ ms (fun m => is_job (low_job l) m)) |].
        - intros t Ht H. unfold is_some in H. destruct (low_job l t) as [m |] eqn:E; try discriminate. exists m. split.
          apply in_seq. apply (Hrange t m); auto. apply is_job_spec. auto.
        - apply total_mono. intros m _. apply (cnt_list _ js (part m)). intros t Ht H.
          pose proof H as H'. apply is_job_spec, low_job_spec in H'. destruct H' as [_ H'].
          apply host_job_spec in H'. destruct H' as [_ [j Hj]]. exists j. split.
          apply in_seq. destruct (window_uses p s M _ _ _ _ Htl Hj). lia.
          unfold part. rewrite H. apply in_window_spec. auto. }
      assert (Heach : forall m j, cnt (part m j) u te <=
        x * total qs (fun q => used q m j) + (host (segment_at p l j) - x)).
      { intros m j. destruct (cnt (part m j) u te) as [| c] eqn:E. lia. rewrite <- E.
        destruct (cnt_pos (part m j) u te ltac:(lia)) as [t [Ht Hp]].
        assert (Hused : 1 <= total qs (fun q => used q m j)).
        { eapply Nat.le_trans; [| apply (total_in qs (fun q => used q m j) (stretch t))].
          - unfold used. assert (E1 : (0 <? cnt (fun t0 => part m j t0
            && Nat.eqb (stretch t0) (stretch t)) u te) = true);
              [| rewrite E1; auto].
            apply Nat.ltb_lt. apply (cnt_pos_intro _ u te t); auto. rewrite Hp. apply Nat.eqb_refl.
          - apply in_seq. pose proof (stretch_most t). lia. }
        assert (Hhost : cnt (part m j) u te <= host (segment_at p l j)).
        { eapply Nat.le_trans; [| apply (host_limit p s M l m j u te Htl)]. apply cnt_mono. intros t' _ H.
          destruct (Hpart m j t' H) as [H1 H2]. apply low_job_spec in H1. destruct H1 as [_ H1].
          apply host_job_spec in H1. destruct H1 as [H1 _]. apply run_job_spec, runs_spec in H1.
          unfold host_unit. rewrite H1. apply in_window_spec. auto. }
        nia. }
      assert (Hone : forall q, total ms (fun m => total js (fun j => used q m j)) <= 1).
      { intro q.
        assert (Huse : forall m j, 0 < used q m j -> exists t, u <= t < te /\ low_job l t = Some m /\ ph l m t = Win j
          /\ stretch t = q).
        { intros m j H. unfold used in H. destruct (0 <? _) eqn:E; [| lia]. apply Nat.ltb_lt in E.
          destruct (cnt_pos _ _ _ E) as [t [Ht Hp]]. apply andb_true_iff in Hp. destruct Hp as [Hp Hq].
          apply Nat.eqb_eq in Hq. destruct (Hpart m j t Hp). exists t. auto. }
        assert (Huniq : forall m j m' j', 0 < used q m j -> 0 < used q m' j' -> m = m' /\ j = j').
        { intros m j m' j' H H'. destruct (Huse m j H) as [t [Ht [L [P Q]]]].
          destruct (Huse m' j' H') as [t' [Ht' [L' [P' Q']]]].
          destruct (le_lt_dec t t') as [Hle | Hgt].
          - apply (stretch_window l t t' m j m' j'); auto; try lia.
          - destruct (stretch_window l t' t m' j' m j) as [-> ->]; auto; lia. }
        assert (H1 : forall m, total js (fun j => used q m j) <= 1).
        { intro m. apply total_at_most_one. apply seq_NoDup.
          - intros j _. unfold used. destruct (0 <? _); lia.
          - intros j j' _ _ H H'. destruct (Huniq m j m j' H H'). auto. }
        assert (Hsome : forall m, 0 < total js (fun j => used q m j) -> exists j, 0 < used q m j).
        { intro m. clear. induction js as [| a l' IH]; simpl. lia. intro H.
          destruct (used q m a) eqn:E. apply IH. lia. exists a. lia. }
        apply total_at_most_one. apply seq_NoDup.
        - intros m _. apply H1.
        - intros m m' _ _ H H'. destruct (Hsome m H) as [j Hj]. destruct (Hsome m' H') as [j' Hj'].
          destruct (Huniq m j m' j' Hj Hj'). auto. }
      eapply Nat.le_trans. apply Hcount.
      eapply Nat.le_trans; [apply (total_mono _ _ (fun m => x * total qs (fun q => total js (fun j => used q m j))
        + total (segs p l) (fun g => host g - x))) |].
      - intros m _. rewrite total_exchange, <- total_mul.
        rewrite <- (total_nth (segs p l) no_segment (fun g => host g - x)).
        change (total (seq 0 (length (segs p l))) (fun j => host (nth j (segs p l) no_segment) - x))
          with (total js (fun j => host (segment_at p l j) - x)).
        rewrite <- total_add. apply total_mono. intros j _. apply Heach.
      - rewrite total_add, total_mul, total_exchange, total_const. unfold ms at 2. rewrite seq_length.
        assert (H : total qs (fun q => total ms (fun m => total js (fun j => used q m j))) <= S (segments p i)).
        { eapply Nat.le_trans. apply (total_mono _ _ (fun _ => 1)). intros q _. apply Hone.
          rewrite total_const. unfold qs. rewrite seq_length. lia. }
        nia.
    Qed.

    Lemma low_bound l : In l (n_lower p i) -> cnt (is_some (low_job l)) u te <= n_blocking_by p i l (te - u).
    Proof.
      intro Hl. pose proof (in_lower i l Hl) as [Htl _]. unfold blocking_by. destruct (zerob (B p i)) eqn:EB.
      - apply Nat.eqb_eq in EB. unfold largest. apply fold_least.
        + apply (low_threshold l 0); auto.
        + intros g _. apply (low_threshold l (host g)); auto.
      - apply (work_without_carry_in (arr l) (T p l) (T_positive _ V l Htl) (spaced p s M l Htl)).
        + intros t m Ht H. destruct (low_in l m t ltac:(lia) H). lia.
        + intro m. apply low_count; auto.
    Qed.

    (** ** The classes of a job *)

    (** No task without windows that is above i has work left from before u. *)
    Hypothesis Hclear : forall h m, In h (n_hpp p i) -> segments p h = 0 -> release s h m < u ->
      complete s h m u = true.

    Definition job_class h t :=
      is_some (run_job h) t || (n_same p i h && is_some (restricted i k (rest_job h)) t).

    Lemma cpu_work_at_most_R h : task h -> n_cpu p h <= R p h.
    Proof. intro Hh. pose proof (R_contains _ V h Hh). unfold cpu_work. lia. Qed.

    Lemma run_bound h : task h -> cnt (is_some (run_job h)) u te
      <= n_number p (te - u) (R p h) (n_cpu p h) h * n_cpu p h.
    Proof.
      intro Hh. apply (rate te h (run_job h) (R p h)); auto. apply cpu_work_at_most_R; auto.
      intros; apply (run_in p s M te K1); auto. intros; apply run_count; auto.
    Qed.

    Lemma rest_bound_inside h : task h -> cnt (is_some (restricted i k (rest_job h))) u te <=
      n_number_of p i (te - u) (n_with_update p h) (n_device_updates p h) h * n_device_updates p h.
    Proof.
      intro Hh. apply (rate_both te K2 i k h (rest_job h) (late h)); auto. apply device_updates_at_most_late; auto.
      intros; apply (rest_in te K1); auto. intros; apply rest_count; auto.
    Qed.

    (** The jobs of a task without windows arrive at u - Jr or later. *)
    Lemma clear_in h t m : In h (n_hpp p i) -> segments p h = 0 -> u <= t < te -> run_job h t = Some m ->
      arr h m <= t /\ u <= arr h m + J p h.
    Proof.
      clear Hi K2 Hute Hwait. intros Hin Hseg Ht Hr. pose proof Hin as Hin'. apply in_hpp in Hin'.
      destruct Hin' as [Hh _]. split.
      { apply (run_in p s M te K1) in Hr; lia. }
      pose proof (released _ _ M h m Hh) as Hrel. destruct (le_lt_dec u (release s h m)) as [| Hlt]. lia. exfalso.
      apply run_job_spec in Hr. destruct (exec_wants _ _ M _ _ _ _ Hr) as [_ [_ Hw]]. apply wants_phase in Hw.
      apply (phase_pending p s M) in Hw; auto. destruct Hw as [_ Hnc].
      assert (complete s h m t = true); [| congruence]. apply (complete_later p s M h m u t); auto. lia.
    Qed.

    Lemma run_count_cpu_only h m : task h -> segments p h = 0 -> cnt (is_job (run_job h) m) u te <= C p h.
    Proof.
      clear Hi K1 K2 Hute Hwait Hclear. intros Hh Hseg. eapply Nat.le_trans. apply run_count; auto. unfold cpu_work, Gm.
      unfold segments in Hseg. destruct (segs p h); [simpl; lia | discriminate].
    Qed.

    Lemma not_same h : n_uses p h = false -> n_same p i h = false.
    Proof. intro H. unfold same_gpu. rewrite H, andb_false_r. reflexivity. Qed.

    Lemma no_segments h : n_uses p h = false -> segments p h = 0.
    Proof. intro H. unfold segments. rewrite (not_uses p h H). reflexivity. Qed.

    (** (a), (b), (c) *)
    Lemma job_class_bound h : In h (n_hpp p i) -> cnt (job_class h) u te <= n_boosted_local p i h (te - u).
    Proof.
      intro Hin. pose proof Hin as Hin'. apply in_hpp in Hin'. destruct Hin' as [Hh _].
      unfold boosted_local. destruct (n_uses p h) eqn:Hu.
      - destruct (n_same p i h) eqn:Hs.
        + apply Nat.min_glb.
          * eapply Nat.le_trans; [apply (cnt_mono _ (is_some (whole_job h))) |].
            { intros t _ H. unfold job_class in H. rewrite Hs in H. simpl in H.
              unfold is_some, restricted, rest_job in H. unfold is_some, Window.whole_job.
              destruct (run_job h t); auto. destruct (inside i k t); try discriminate.
              destruct (device_job h t); auto. }
            apply (rate te h (whole_job h) (late h)); auto.
            { pose proof (whole_at_most_R _ V h Hh). unfold Window.late. lia. }
            intros; apply (whole_in p s M te K1); auto. intros; apply whole_count; auto.
          * eapply Nat.le_trans; [apply (cnt_mono _ (fun t => is_some (run_job h) t
              || is_some (restricted i k (rest_job h)) t)) |].
            { intros t _ H. unfold job_class in H. rewrite Hs in H. auto. }
            eapply Nat.le_trans. apply cnt_or. apply Nat.add_le_mono. apply run_bound; auto.
            apply rest_bound_inside; auto.
        + eapply Nat.le_trans; [apply (cnt_mono _ (is_some (run_job h))) |].
          { intros t _ H. unfold job_class in H. rewrite Hs, orb_false_r in H. auto. }
          apply run_bound; auto.
      - eapply Nat.le_trans; [apply (cnt_mono _ (is_some (run_job h))) |].
        { intros t _ H. unfold job_class in H. rewrite (not_same h Hu), orb_false_r in H. auto. }
        pose proof (no_segments h Hu) as Hseg.
        apply (work_without_carry_in (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh)).
        + intros t m Ht Hr. apply clear_in; auto.
        + intro m. apply run_count_cpu_only; auto.
    Qed.

    Variable sel : nat -> bool.

    Lemma run_class h m t : exec s (core p i) t = Some (h, m) -> n_above p i h = true ->
      In h (n_hpp p i) /\ job_class h t = true.
    Proof.
      intros He Ha. destruct (exec_wants _ _ M _ _ _ _ He) as [Hh [Hc _]]. split. apply in_hpp; auto.
      rewrite <- Hc in He. apply run_job_spec in He. unfold job_class, is_some. rewrite He. reflexivity.
    Qed.

    Lemma low_class h m t : exec s (core p i) t = Some (h, m) -> (prio p h < prio p i)%N -> in_some_window s h m t ->
      in_win i k t = false -> in_blocked s i k t = false -> In h (n_lower p i) /\ is_some (low_job h) t = true.
    Proof.
      intros He Hpr Hw H1 H2. destruct (exec_wants _ _ M _ _ _ _ He) as [Hh [Hc _]]. split.
      - unfold lower. apply filter_In. split. apply in_tasks; auto. apply above_spec. auto.
      - rewrite <- Hc in He. apply run_job_spec in He.
        assert (Hj : host_job h t = Some m) by (apply host_job_spec; auto).
        unfold is_some, low_job. rewrite H1, H2, Hj. reflexivity.
    Qed.

    (** Classes A to G. *)
    Lemma job_classes t : u <= t < te ->
      own_unit p s i k t = true \/ own_update p s i k t = true \/
      (exists h, In h (n_hpp p i) /\ job_class h t = true) \/
      (exists y, In y (n_rem p i) /\ is_some (restricted i k (remote_job sel y)) t = true) \/
      (exists c, In c (selected sel) /\ is_some (restricted i k (host_job c)) t = true) \/
      (exists l, In l (n_lower p i) /\ is_some (low_job l) t = true).
    Proof.
      clear K1 K2 Hute Hclear. intro Ht.
      (* while a task x of the core, i or above, outside of windows of i, is ready *)
      assert (Hready : forall x n, task x -> core p x = core p i -> (x = i \/ (prio p i < prio p x)%N) ->
        wants_core s x n t -> in_win i k t = false -> in_blocked s i k t = false ->
        (exists m, exec s (core p i) t = Some (i, m)) \/
        (exists h, In h (n_hpp p i) /\ job_class h t = true) \/
        (exists l, In l (n_lower p i) /\ is_some (low_job l) t = true)).
      { intros x n Hx Hxc Hxp Hw Hnw Hnb. destruct (boost_served _ _ MB x n t Hx Hw) as [c [m [He Hpr]]].
        rewrite Hxc in He. destruct (exec_wants _ _ M _ _ _ _ He) as [Hc [Hcc _]].
        destruct (Nat.eq_dec c i) as [-> | Hci]. { left. exists m. auto. }
        pose proof (cpu_distinct _ V i c Hi Hc ltac:(auto) ltac:(auto)) as Hd.
        destruct (N.lt_ge_cases (prio p i) (prio p c)) as [Hup | Hdown].
        - right. left. exists c. apply (run_class c m t He). apply above_spec. auto.
        - right. right. exists c. apply (low_class c m t He); auto. lia.
          destruct Hpr as [-> | [[Hwin _] | [Hle _]]]; auto. destruct Hxp; [congruence | lia].
          exfalso. destruct Hxp as [-> | Hxp]; lia. }
      destruct (ph i k t) as [| | | j] eqn:E.
      - destruct (Hwait t Ht) as [H | [[h [n [Hh Hw]]] Hidle]]; [congruence |].
        apply in_hpp in Hh. destruct Hh as [Hh Ha]. apply above_spec in Ha. destruct Ha as [Hc Hpr].
        destruct (Hready h n Hh Hc (or_intror Hpr) Hw) as [[m He] | [H | H]]; auto 10.
        + unfold in_win. rewrite E. reflexivity.
        + unfold in_blocked. rewrite E. reflexivity.
        + exfalso. destruct (exec_wants _ _ M _ _ _ _ He) as [_ [_ Hwi]]. apply wants_phase in Hwi. apply Hwi.
          apply Hidle.
      - destruct (Hready i k Hi eq_refl (or_introl eq_refl) (or_introl E)) as [[m He] | [H | H]]; auto 10.
        + unfold in_win. rewrite E. reflexivity.
        + unfold in_blocked. rewrite E. reflexivity.
        + left. assert (m = k).
          { destruct (exec_wants _ _ M _ _ _ _ He) as [_ [_ Hwi]]. apply wants_phase in Hwi.
            apply (one_job p s M i m k t); auto. congruence. } subst m.
          unfold own_unit, cpu_unit, in_cpu. rewrite E. apply runs_spec in He. rewrite He. reflexivity.
      - left. unfold own_unit, in_blocked. rewrite E. simpl. apply orb_true_r.
      - destruct (window_uses p s M _ _ _ _ Hi E) as [_ Hj].
        destruct (opening i k j t) eqn:Eo.
        { right. left. unfold own_update. apply (any_window_true p i _ t j Hj). apply orb_true_iff.
          apply opening_own; auto. }
        pose proof (inside_intro i k j t Hi E Eo) as Hin.
        assert (Hres : forall f, is_some (restricted i k f) t = is_some f t).
        { intro f. unfold is_some, restricted. rewrite Hin. reflexivity. }
        destruct (inside_classes sel i k j t Hi E Eo) as [[H | H] | [[h [Hh [Hu H]]] | [[h [Hh [Hs H]]] | [[y [Hy H]]
          | [c [Hc H]]]]]].
        + left. unfold own_unit. rewrite (any_window_true p i (host_unit p s i k) t j Hj H), orb_true_l, !orb_true_r.
          auto.
        + left. unfold own_unit. rewrite (any_window_true p i (device_unit p s i k) t j Hj H), !orb_true_r. auto.
        + right. right. left. exists h. split; auto. unfold job_class. unfold is_some, host_job in H. unfold is_some.
          destruct (run_job h t); [reflexivity | discriminate].
        + right. right. left. exists h. split; auto. unfold job_class. rewrite Hs, Hres, H. apply orb_true_r.
        + right. right. right. left. exists y. rewrite Hres. auto.
        + right. right. right. right. left. exists c. rewrite Hres. auto.
    Qed.
  End Job.

  (** The sum over the classes. *)
  Lemma job_sum i k u te : task i -> in_time p s te -> windows_short te -> u <= te ->
    (forall t, u <= t < te -> ph i k t <> Idle \/
      ((exists h m, In h (n_hpp p i) /\ wants_core s h m t) /\ forall m, ph i m t = Idle)) ->
    (forall h m, In h (n_hpp p i) -> segments p h = 0 -> release s h m < u -> complete s h m u = true) ->
    te - u <= cnt (own_unit p s i k) u te + n_updates p i
      + total (n_hpp p i) (fun h => cnt (job_class i k h) u te)
      + n_remote_terms p i (fun y => n_number_of p i (te - u) (n_with_update p y) (n_hold p y) y)
                           (fun c => n_number_of p i (te - u) (R p c) (n_Gm p c) c)
      + total (n_lower p i) (fun l => n_blocking_by p i l (te - u)).
  Proof.
    intros Hi K1 K2 Hute Hwait Hclear.
    set (m := fun y => n_number_of p i (te - u) (n_with_update p y) (n_hold p y) y).
    set (once := fun c => n_number_of p i (te - u) (R p c) (n_Gm p c) c).
    set (sel := fun c => once c * n_Gm p c <? by_window i m c).
    pose proof (selection i m once) as HS. cbv zeta in HS. fold sel in HS. rewrite <- HS.
    pose (Ps := own_unit p s i k :: own_update p s i k :: map (job_class i k) (n_hpp p i)
      ++ map (fun y => is_some (restricted i k (remote_job sel y))) (n_rem p i)
      ++ map (fun c => is_some (restricted i k (host_job c))) (selected sel)
      ++ map (fun l => is_some (low_job i k l)) (n_lower p i)).
    assert (Hall : forall t, u <= t < te -> exists P, In P Ps /\ P t = true).
    { intros t Ht.
      destruct (job_classes i k u te Hi Hwait sel t Ht)
        as [H | [H | [[h [Hh H]] | [[y [Hy H]] | [[c [Hc H]] | [l [Hl H]]]]]]].
      - exists (own_unit p s i k). split; auto. left. reflexivity.
      - exists (own_update p s i k). split; auto. right. left. reflexivity.
      - exists (job_class i k h). split; auto. right. right. apply in_or_app. left. apply in_map. auto.
      - eexists. split; [| exact H]. right. right. apply in_or_app. right. apply in_or_app. left.
        apply (in_map (fun y => is_some (restricted i k (remote_job sel y)))). auto.
      - eexists. split; [| exact H]. right. right. apply in_or_app. right. apply in_or_app. right. apply in_or_app.
        left.
        apply (in_map (fun c => is_some (restricted i k (host_job c)))). auto.
      - eexists. split; [| exact H]. right. right. apply in_or_app. right. apply in_or_app. right. apply in_or_app.
        right.
        apply (in_map (fun l => is_some (low_job i k l))). auto. }
    pose proof (cover Ps u te Hall) as H. unfold Ps in H. simpl total in H. rewrite !total_app, !total_map in H.
    pose proof (own_update_count p s M i k u te Hi) as H0.
    assert (H2 : total (n_rem p i) (fun y => cnt (is_some (restricted i k (remote_job sel y))) u te)
      <= total (n_rem p i) (fun y => m y * remote_work sel y)).
    { apply total_mono. intros y Hy. apply (remote_bound_inside te K1 K2 sel i k y u te); auto.
      apply (in_rem p i y); auto. }
    assert (H3 : total (selected sel) (fun c => cnt (is_some (restricted i k (host_job c))) u te)
      <= total (selected sel) (fun c => once c * n_Gm p c)).
    { apply total_mono. intros c Hc. apply (host_bound_inside te K1 K2 i k c u te); auto.
      unfold selected in Hc. apply filter_In in Hc. apply (in_tasks p c). tauto. }
    assert (H4 : total (n_lower p i) (fun l => cnt (is_some (low_job i k l)) u te)
      <= total (n_lower p i) (fun l => n_blocking_by p i l (te - u))).
    { apply total_mono. intros l Hl. apply (low_bound i k u te); auto. }
    lia.
  Qed.

  (** ** Starts *)

  Definition wantsb h m t := match ph h m t with Cpu => true | Win _ => host_ready s h m t | _ => false end.

  Lemma wantsb_spec h m t : wantsb h m t = true <-> wants_core s h m t.
  Proof.
    unfold wantsb, wants_core. destruct (ph h m t) as [| | | j]; split; intro H; try discriminate; auto.
    - destruct H as [H | [j [H _]]]; discriminate.
    - destruct H as [H | [j [H _]]]; discriminate.
    - right. exists j. auto.
    - destruct H as [H | [j' [_ H]]]; [discriminate | auto].
  Qed.

  (** A task above i is ready for the core. A job is not older than the time, so only finitely many matter. *)
  Definition above_ready i t := existsb (fun h => existsb (fun m => wantsb h m t) (seq 0 (S t))) (n_hpp p i).

  Lemma above_ready_spec i t : above_ready i t = true <-> exists h m, In h (n_hpp p i) /\ wants_core s h m t.
  Proof.
    unfold above_ready. rewrite existsb_exists. split.
    - intros [h [Hh H]]. apply existsb_exists in H. destruct H as [m [_ H]]. apply wantsb_spec in H. eauto.
    - intros [h [m [Hh H]]]. exists h. split; auto. apply existsb_exists. exists m. split; [| apply wantsb_spec; auto].
      apply in_hpp in Hh. destruct Hh as [Hh _]. apply in_seq.
      apply wants_phase in H. apply (phase_pending p s M) in H; auto. destruct H as [Hr _].
      pose proof (released _ _ M h m Hh). pose proof (T_positive _ V h Hh).
      pose proof (arrivals_apart (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh) 0 m) as Ha. simpl in Ha. nia.
  Qed.

  (** A start of job k of i (boost.md, section 3). *)
  Record start i k u : Prop := {
    start_le : u <= release s i k;
    start_ready : forall t, u <= t < release s i k -> exists h m, In h (n_hpp p i) /\ wants_core s h m t;
    start_done : forall m, m < k -> complete s i m u = true;
    start_clear : forall h m, In h (n_hpp p i) -> segments p h = 0 -> release s h m < u -> complete s h m u = true }.

  Lemma later i k t t' : task i -> t <= t' -> complete s i k t = true -> complete s i k t' = true.
  Proof. apply (complete_later p s M). Qed.

  Lemma cpu_only_phase h n t : task h -> segments p h = 0 -> ph h n t <> Idle -> ph h n t = Cpu.
  Proof.
    intros Hh Hseg Hp. destruct (ph h n t) as [| | | j] eqn:E; auto.
    - congruence.
    - pose proof (blocking_left _ _ M h n t Hh E) as Hb. rewrite (no_blocking _ V h Hh Hseg) in Hb. lia.
    - destruct (window_uses p s M _ _ _ _ Hh E). lia.
  Qed.

  (** Just before an instant at which nobody above is ready, tasks without windows have no work left. *)
  Lemma clear_at i t0 : t0 = 0 \/ above_ready i (pred t0) = false ->
    forall h m, In h (n_hpp p i) -> segments p h = 0 -> release s h m < t0 -> complete s h m t0 = true.
  Proof.
    intros H0 h m Hin Hseg Hr. destruct (complete s h m t0) eqn:E; auto. exfalso.
    destruct H0 as [-> | H0]; [lia |]. pose proof Hin as Hin'. apply in_hpp in Hin'. destruct Hin' as [Hh _].
    assert (Hp : pending s h m (pred t0)).
    { split. lia. destruct (complete s h m (pred t0)) eqn:E'; auto.
      assert (complete s h m t0 = true) by (apply (later h m (pred t0)); auto; lia). congruence. }
    destruct (first_pending h m _ Hh Hp) as [n [_ Hw]]. apply (phase_working _ _ M) in Hw; auto.
    apply cpu_only_phase in Hw; auto.
    assert (above_ready i (pred t0) = true); [| congruence].
    apply above_ready_spec. exists h, n. split; auto. left. auto.
  Qed.

  (** Before the release of job k, with the earlier ones complete, no job of i is at work. *)
  Lemma nobody_at_work i k t : task i -> t < release s i k -> (forall m, m < k -> complete s i m t = true) ->
    forall m, ph i m t = Idle.
  Proof.
    intros Hi Ht Hc m. destruct (ph i m t) eqn:E; auto; exfalso;
    (assert (Hp : pending s i m t) by (apply (phase_pending p s M); auto; congruence)); destruct Hp as [Hr Hn];
    (destruct (lt_eq_lt_dec m k) as [[L | ->] | L]; [rewrite (Hc m L) in Hn; discriminate | lia |]);
    pose proof (arrivals_ordered (arr i) (T p i) (T_positive _ V i Hi) (spaced p s M i Hi) k m L);
    pose proof (released _ _ M i k Hi); pose proof (released _ _ M i m Hi);
    pose proof (R_at_most_T _ V i Hi); pose proof (R_contains _ V i Hi); lia.
  Qed.

  Definition own_work i := C p i + B p i + n_Gm p i + n_Ge p i.

  Lemma own_active i k t : own_unit p s i k t = true -> ph i k t <> Idle.
  Proof.
    unfold own_unit. rewrite !orb_true_iff. intros [H | [H | [H | H]]] E.
    - unfold cpu_unit, in_cpu in H. rewrite E, andb_false_r in H. discriminate.
    - unfold in_blocked in H. rewrite E in H. discriminate.
    - apply existsb_exists in H. destruct H as [j [_ H]]. unfold host_unit, in_window in H.
      rewrite E, andb_false_r in H. discriminate.
    - apply existsb_exists in H. destruct H as [j [_ H]]. unfold device_unit in H. rewrite !andb_true_iff in H.
      destruct H as [[H _] _]. apply holds_spec in H. destruct (holder_facts p s M _ _ _ _ _ H) as [_ [_ Hp]].
      congruence.
  Qed.

  Lemma own_at_most i k a b : task i -> cnt (own_unit p s i k) a b <= own_work i.
  Proof.
    intro Hi. eapply Nat.le_trans. apply (cnt_within _ a b 0 b); lia.
    apply cnt_limit. intros t _ H. apply own_count; auto. apply own_active; auto.
  Qed.

  Definition width i := R p i - J p i.

  (** The recurrence, term by term. *)
  Lemma boosted_terms i : task i ->
    own_work i + n_updates p i + total (n_hpp p i) (fun h => n_boosted_local p i h (width i))
      + n_remote_terms p i (fun y => n_number_of p i (width i) (n_with_update p y) (n_hold p y) y)
                           (fun c => n_number_of p i (width i) (R p c) (n_Gm p c) c)
      + total (n_lower p i) (fun l => n_blocking_by p i l (width i)) <= width i.
  Proof.
    intro Hi. pose proof (boosted_R _ VB i Hi) as H. unfold boosted_rhs, own in H. fold (width i) in H.
    change (sum nat 0 Nat.add (n_hpp p i) (fun h => n_boosted_local p i h (width i)))
      with (total (n_hpp p i) (fun h => n_boosted_local p i h (width i))) in H.
    change (sum nat 0 Nat.add (n_lower p i) (fun l => n_blocking_by p i l (width i)))
      with (total (n_lower p i) (fun l => n_blocking_by p i l (width i))) in H.
    unfold own_work. unfold width at 5. lia.
  Qed.

  (** A job is complete [width] after its start. *)
  Lemma complete_after_start i k u t : task i -> kept t -> 0 < own_work i -> start i k u -> u + width i <= t ->
    complete s i k (u + width i) = true.
  Proof.
    intros Hi K Hpos Hs Ht. set (te := u + width i) in *. destruct (complete s i k te) eqn:E; auto. exfalso.
    destruct (kept_earlier t te Ht K) as [K1 K2].
    assert (Hdone : forall v, u <= v -> forall m, m < k -> complete s i m v = true).
    { intros v Hv m Hm. apply (later i m u v); auto. apply (start_done _ _ _ Hs); auto. }
    assert (Hwork : forall v, u <= v <= te -> release s i k <= v -> ph i k v <> Idle).
    { intros v Hv Hr. apply (phase_working _ _ M); auto. split; [| apply Hdone; lia]. split; auto.
      destruct (complete s i k v) eqn:E'; auto.
      assert (complete s i k te = true) by (apply (later i k v te); auto; lia). congruence. }
    assert (Hwait : forall v, u <= v < te -> ph i k v <> Idle \/
      ((exists h m, In h (n_hpp p i) /\ wants_core s h m v) /\ forall m, ph i m v = Idle)).
    { intros v Hv. destruct (le_lt_dec (release s i k) v) as [Hr | Hr].
      - left. apply Hwork; auto. lia.
      - right. split. apply (start_ready _ _ _ Hs). lia. apply (nobody_at_work i k); auto. apply Hdone. lia. }
    assert (Hute : u <= te) by (unfold te; lia).
    pose proof (job_sum i k u te Hi K1 K2 Hute Hwait (start_clear _ _ _ Hs)) as I.
    replace (te - u) with (width i) in I by (unfold te; lia).
    assert (Hown : cnt (own_unit p s i k) u te < own_work i).
    { destruct (le_lt_dec (release s i k) te) as [Hr | Hr].
      - eapply Nat.le_lt_trans. apply (cnt_within _ u te 0 te); lia. apply own_count; auto.
      - rewrite cnt_none; auto. intros v Hv. destruct (own_unit p s i k v) eqn:Eo; auto. exfalso.
        apply own_active in Eo. apply Eo. apply (nobody_at_work i k); auto. lia. apply Hdone. lia. }
    assert (H1 : total (n_hpp p i) (fun h => cnt (job_class i k h) u te)
      <= total (n_hpp p i) (fun h => n_boosted_local p i h (width i))).
    { apply total_mono. intros h Hh. replace (width i) with (te - u) by (unfold te; lia).
      apply (job_class_bound i k u te); auto. apply (start_clear _ _ _ Hs). }
    pose proof (boosted_terms i Hi). lia.
  Qed.

  (** Lemma 14: there is a start. *)
  Lemma start_exists i t : task i -> kept t -> 0 < own_work i -> forall k, release s i k <= t -> exists u, start i k u.
  Proof.
    intros Hi K Hpos k. induction k as [| k IH]; intro Hrt.
    { destruct (busy_start (above_ready i) (release s i 0)) as [t0 [H1 [H2 H3]]]. exists t0. constructor; auto.
      - intros v Hv. apply above_ready_spec. auto.
      - intros m Hm. lia.
      - apply clear_at; auto. }
    destruct (busy_start (above_ready i) (release s i (S k))) as [t0 [H1 [H2 H3]]].
    destruct (forallb (fun m => complete s i m t0) (seq 0 (S k))) eqn:Eall.
    { rewrite forallb_forall in Eall. exists t0. constructor; auto.
      - intros v Hv. apply above_ready_spec. auto.
      - intros m Hm. apply Eall. apply in_seq. lia.
      - apply clear_at; auto. }
    (* the job before is not complete at t0 *)
    assert (Hm0 : exists m0, m0 <= k /\ complete s i m0 t0 = false).
    { destruct (existsb (fun m => negb (complete s i m t0)) (seq 0 (S k))) eqn:Ex.
      - apply existsb_exists in Ex. destruct Ex as [m0 [Hin Hn]]. apply in_seq in Hin. apply negb_true_iff in Hn.
        exists m0. split; auto. lia.
      - exfalso. assert (Ht : forallb (fun m => complete s i m t0) (seq 0 (S k)) = true); [| congruence].
        apply forallb_forall. intros m Hm. destruct (complete s i m t0) eqn:Ec; auto.
        assert (Hex : existsb (fun m => negb (complete s i m t0)) (seq 0 (S k)) = true); [| congruence].
        apply existsb_exists. exists m. rewrite Ec. auto. }
    destruct Hm0 as [m0 [Hm0 Hn0]].
    pose proof (released _ _ M i k Hi) as R1. pose proof (released _ _ M i (S k) Hi) as R2.
    pose proof (sporadic _ _ M i k Hi) as Hsp. pose proof (R_at_most_T _ V i Hi) as HRT.
    pose proof (R_contains _ V i Hi) as HRc.
    destruct (IH ltac:(lia)) as [u Hu]. pose proof (start_le _ _ _ Hu) as Hle.
    set (te := u + width i). assert (Hte : te <= release s i (S k)) by (unfold te, width; lia).
    assert (Htet : te <= t) by lia.
    pose proof (complete_after_start i k u t Hi K Hpos Hu Htet) as Hck. fold te in Hck.
    assert (Hute : u <= te) by (unfold te; lia).
    assert (Hbefore : forall v, u <= v -> complete s i k v = true -> t0 < v /\ forall m, m < S k ->
      complete s i m v = true).
    { intros v Hv Hc. assert (Hall : forall m, m < S k -> complete s i m v = true).
      { intros m Hm. destruct (Nat.eq_dec m k) as [-> |]; auto. apply (later i m u v); auto.
        apply (start_done _ _ _ Hu). lia. }
      split; auto. destruct (le_lt_dec v t0) as [L |]; auto. exfalso.
      assert (complete s i m0 t0 = true); [| congruence]. apply (later i m0 v t0); auto. apply Hall. lia. }
    destruct (Hbefore te Hute Hck) as [Ht0 Hall].
    exists te. constructor; auto.
    { intros v Hv. apply above_ready_spec. apply H2. lia. }
    (* (iii): by counting, every class measures exactly its term *)
    intros h m Hin Hseg Hr. destruct (complete s h m te) eqn:Ec; auto. exfalso.
    pose proof Hin as Hin'. apply in_hpp in Hin'. destruct Hin' as [Hh _].
    destruct (kept_earlier t te Htet K) as [K1 K2].
    assert (Hwait : forall v, u <= v < te -> ph i k v <> Idle \/
      ((exists h m, In h (n_hpp p i) /\ wants_core s h m v) /\ forall m, ph i m v = Idle)).
    { intros v Hv. destruct (le_lt_dec (release s i k) v) as [Hrv | Hrv].
      - destruct (complete s i k v) eqn:Ev.
        + right. destruct (Hbefore v ltac:(lia) Ev) as [Hv0 Hallv]. split.
          * apply above_ready_spec. apply H2. lia.
          * apply (nobody_at_work i (S k)); auto. lia.
        + left. apply (phase_working _ _ M); auto. split. split; auto.
          intros n Hn. apply (later i n u v); auto. lia. apply (start_done _ _ _ Hu); auto.
      - right. split. apply (start_ready _ _ _ Hu). lia. apply (nobody_at_work i k); auto.
        intros n Hn. apply (later i n u v); auto. lia. apply (start_done _ _ _ Hu); auto. }
    pose proof (job_sum i k u te Hi K1 K2 Hute Hwait (start_clear _ _ _ Hu)) as I.
    replace (te - u) with (width i) in I by (unfold te; lia).
    pose proof (own_at_most i k u te Hi) as Hown. pose proof (boosted_terms i Hi) as HT.
    assert (Hp : pending s h m te) by (split; auto; lia).
    destruct (first_pending h m te Hh Hp) as [n [Hnm Hw]]. pose proof Hw as [[Hrn Hcn] _].
    apply (phase_working _ _ M) in Hw; auto. apply cpu_only_phase in Hw; auto.
    pose proof (cpu_left _ _ M h n te Hh Hw) as Hleft. pose proof (released _ _ M h n Hh) as Hreln.
    pose proof (released _ _ M h m Hh) as Hrelm.
    assert (Hu0 : n_uses p h = false).
    { unfold uses, eta. unfold segments in Hseg. rewrite Hseg. reflexivity. }
    assert (Hstrict : cnt (job_class i k h) u te < n_boosted_local p i h (te - u)).
    { unfold boosted_local. rewrite Hu0.
      eapply Nat.le_lt_trans; [apply (cnt_mono _ (is_some (run_job h))) |].
      { intros v _ H. unfold job_class in H. rewrite (not_same i h Hu0), orb_false_r in H. auto. }
      apply (work_strict (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh) (run_job h) u te (J p h) (C p h) n).
      - intros v n' Hv Hrun. apply (clear_in i u te K1 (start_clear _ _ _ Hu) h v n'); auto.
      - intro n'. apply run_count_cpu_only; auto.
      - destruct (Nat.eq_dec n m) as [-> |]. lia.
        pose proof (arrivals_ordered (arr h) (T p h) (T_positive _ V h Hh) (spaced p s M h Hh) n m ltac:(lia)). lia.
      - destruct (le_lt_dec u (release s h n)) as [| L]. lia. exfalso.
        assert (complete s h n te = true); [| congruence]. apply (later h n u te); auto.
        apply (start_clear _ _ _ Hu); auto.
      - eapply Nat.le_lt_trans; [| exact Hleft]. eapply Nat.le_trans; [| apply (cnt_within _ u te 0 te); lia].
        apply cnt_mono. intros v _ H. apply is_job_spec, run_job_spec in H.
        destruct (exec_wants _ _ M _ _ _ _ H) as [_ [_ Hwant]]. apply wants_phase in Hwant.
        apply cpu_only_phase in Hwant; auto. unfold cpu_unit, in_cpu. rewrite Hwant. apply runs_spec in H. rewrite H.
        reflexivity. }
    assert (Hlt : total (n_hpp p i) (fun h => cnt (job_class i k h) u te)
      < total (n_hpp p i) (fun h => n_boosted_local p i h (width i))).
    { replace (width i) with (te - u) by (unfold te; lia). apply (total_lt _ _ _ h); auto.
      intros h' Hh'. apply (job_class_bound i k u te); auto. apply (start_clear _ _ _ Hu). }
    lia.
  Qed.

  Lemma job_step t : kept t -> forall i k, task i -> pending s i k t -> t < arr i k + R p i.
  Proof.
    intros K i k Hi Hp. destruct (le_lt_dec (arr i k + R p i) t) as [Hle |]; auto. exfalso.
    destruct (first_pending i k t Hi Hp) as [n [_ Hw]]. apply (phase_working _ _ M) in Hw; auto.
    pose proof (own_count p s M i n t Hi Hw) as Hown.
    assert (Hpos : 0 < own_work i) by (unfold own_work; lia).
    destruct Hp as [Hr Hc]. destruct (start_exists i t Hi K Hpos k Hr) as [u Hu].
    pose proof (released _ _ M i k Hi). pose proof (start_le _ _ _ Hu). pose proof (R_contains _ V i Hi).
    assert (Hut : u + width i <= t) by (unfold width; lia).
    pose proof (complete_after_start i k u t Hi K Hpos Hu Hut) as Hd.
    apply (later i k _ t) in Hd; auto. congruence.
  Qed.

  Lemma always_kept t : kept t.
  Proof.
    induction t.
    - split; red; intros; lia.
    - pose proof (job_step t IHt) as HA. pose proof (window_step t IHt) as HB.
      destruct IHt as [K1 K2]. split; red.
      + intros h m u Hh Hu Hp. destruct (Nat.eq_dec u t) as [-> |]. apply HA; auto. apply K1; auto. lia.
      + intros h m j u Hh Hu Hp. destruct (Nat.eq_dec u t) as [-> |].
        apply HB; auto. apply K2; auto. lia.
  Qed.

  Lemma complete_in_time i k t : task i -> arr i k + R p i <= t -> complete s i k t = true.
  Proof.
    intros Hi Ht. destruct (complete s i k t) eqn:E; auto. exfalso.
    pose proof (released _ _ M i k Hi) as Hr. pose proof (R_contains _ V i Hi) as HR.
    assert (Hp : pending s i k t) by (split; auto; lia).
    pose proof (job_step t (always_kept t) i k Hi Hp). lia.
  Qed.
End Boost.

(** Theorem 11, fixed priorities, boost from begin to end. *)
Theorem boost_theorem p s (V : boost_valid p) (M : boost_obeys p s) i k t :
  i < count p -> arrival s i k + R p i <= t -> complete s i k t = true.
Proof. intros. apply (complete_in_time p s V M M V i k t); auto. Qed.
