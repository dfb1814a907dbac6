(* SPDX-License-Identifier: Apache-2.0 *)
(** Theorems 7 (contexts of idle tasks stay enabled) and 14 (anticipation) of analysis/docs/window.md: the mechanism of
    the daemon with its sets of contexts, and the proof that it obeys the model. Its M2 speaks of desired and applied
    sets, its M3 of a GPU that serves any enabled context with work; that the holder is served follows from K and M9.
    The mechanism without K and A, which theorem 1 was first stated for, obeys the model, too. *)

From Coq Require Import List NArith Bool Arith Lia.
From Gpuseg Require Import Recurrence Counting Model.
Import ListNotations.

(** A set of contexts is a number: bit x says whether context x is in it. The context of task i is i (M10: no other task
    has it); contexts from [count p] on are those of best-effort work. *)
Definition has (contexts : N) (x : nat) : bool := N.testbit contexts (N.of_nat x).

Record mechanism := Mechanism {
  (** The set that the scheduler wants enabled, and the one that the last complete update has enabled. *)
  desired : N -> nat -> N;
  applied : N -> nat -> N;
  (** The update in progress, named by its first instant. *)
  started : N -> nat -> option nat;
  (** On(i): the desired set while i is the holder; the context of i and those of P(i). It does not change. *)
  on : nat -> N;
  (** work g t x: context x has work for GPU g. serves g t: the context whose work GPU g executes. *)
  work : N -> nat -> nat -> bool;
  serves : N -> nat -> option nat }.

Section Contexts.
  Variable p : set nat.
  Variable s : schedule.

  Section Daemon.
    Variable d : mechanism.

    (** The GPU executes work of the device part of window j of job k of i. *)
    Definition served i k j t :=
      match serves d (gpu p i) t with Some x => Nat.eqb x i | None => false end
        && in_window s i k j t && device_ready s i k t.

    Record daemon_obeys : Prop := {
      daemon_tasks :> tasks_obey p s;

      (** K: while a window is open the desired set is On(holder). A: while none is open, nothing is known of it; it may
          change at any instant, and to any set. *)
      desired_held : forall g t i k j, holder s g t = Some (i, k, j) -> desired d g t = on d i;
      (** K: On(i) has the context of i, and those of tasks of higher GPU priority. Others are in it only if they cannot
          be disabled; these have no work while a window is open. *)
      on_own : forall i, is_task p i -> has (on d i) i = true;
      on_other : forall i x, is_task p i -> has (on d i) x = true ->
        x = i \/ (is_task p x /\ (gprio p i < gprio p x)%N) \/
        (forall t, holder s (gpu p i) t <> None -> work d (gpu p i) t x = false);

      (** M2: updates are serial and take at most eps. One starts if, and only if, the desired set is not the applied
          one; at once or when the one in progress ends. It applies the desired set of an instant at which it is in
          progress (the latency of the daemon is part of it). Nothing else changes the applied set, except that an
          update may take no time. *)
      update_run : forall g t b, started d g t = Some b -> b <= t /\ forall u, b <= u <= t -> started d g u = Some b;
      update_eps : forall i g t b, is_task p i -> segments p i <> 0 -> gpu p i = g -> started d g t = Some b ->
        t < b + eps p i;
      update_starts : forall g b, started d g b = Some b -> desired d g b <> applied d g b;
      update_due : forall g t, started d g t = None -> applied d g t = desired d g t;
      update_ends : forall g t b, started d g t = Some b -> started d g (S t) <> Some b ->
        exists u, b <= u <= t /\ applied d g (S t) = desired d g u;
      applied_stays : forall g t, started d g t = None ->
        applied d g (S t) = applied d g t \/ applied d g (S t) = desired d g (S t);

      (** M9: a real-time task has work for its GPU only inside its windows; for other GPUs it has none. *)
      work_in_window : forall g t x, work d g t x = true -> is_task p x ->
        gpu p x = g /\ exists k j, phase s x k t = Win j /\ device_ready s x k t = true;
      window_work : forall i k j t, is_task p i -> phase s i k t = Win j -> device_ready s i k t = true ->
        work d (gpu p i) t i = true;
      (** M3: while no update is in progress, a GPU with work in an applied context executes work of one of them. *)
      gpu_serves : forall g t x, started d g t = None -> has (applied d g t) x = true -> work d g t x = true ->
        exists y, serves d g t = Some y /\ has (applied d g t) y = true /\ work d g t y = true;
      (** A window with device work left has not had all of it. What it gets while it is not the holder, or during an
          update, counts, too. *)
      served_left : forall i k j t, is_task p i -> phase s i k t = Win j -> device_ready s i k t = true ->
        cnt (served i k j) 0 t < device (segment_at p i j);

      (** What the model sees of it: these two define [changes] and [update]. *)
      sees_change : forall g t, changes s g t = negb (N.eqb (desired d g t) (desired d g (pred t)));
      sees_update : forall g t, update s g t =
        match started d g t with Some b => Some (last_change s g b) | None => None end }.

    Hypothesis M : daemon_obeys.

    (** ** M2 *)

    Lemma change_le g b : last_change s g b <= b.
    Proof. induction b; simpl; auto. destruct (changes s g (S b)); lia. Qed.

    Lemma change_last g b : last_change s g b = 0 \/ changes s g (last_change s g b) = true.
    Proof. induction b; simpl; auto. destruct (changes s g (S b)) eqn:E; auto. Qed.

    (** The desired set is the same from its last change on. *)
    Lemma desired_since g b t : last_change s g b <= t <= b -> desired d g t = desired d g b.
    Proof.
      induction b; simpl; intro H. replace t with 0 by lia. reflexivity.
      destruct (changes s g (S b)) eqn:E. replace t with (S b) by lia. reflexivity.
      destruct (Nat.eq_dec t (S b)) as [-> |]; auto.
      rewrite (sees_change M), negb_false_iff, N.eqb_eq in E. simpl in E. rewrite E. apply IHb. lia.
    Qed.

    Lemma change_since g b c : changes s g c = true -> c <= b -> c <= last_change s g b.
    Proof.
      intro Hc. induction b; simpl; intro Hb. lia. destruct (changes s g (S b)) eqn:E; auto.
      apply IHb. destruct (Nat.eq_dec c (S b)) as [-> |]; [congruence | lia].
    Qed.

    (** A start: every instant in progress belongs to an update in progress since its start. *)
    Lemma start_of g t b : started d g t = Some b -> started d g b = Some b.
    Proof. intro H. destruct (update_run M g t b H) as [Hb Hr]. apply Hr. lia. Qed.

    (** An update that starts after the change that it serves waits for one that was in progress before that change. *)
    Lemma start_waits g b : started d g b = Some b -> last_change s g b < b ->
      exists b0, b0 < last_change s g b /\ started d g (pred b) = Some b0.
    Proof.
      intros Hs Hl. pose proof (update_starts M g b Hs) as Hd. set (c := last_change s g b) in *.
      destruct b as [| u]. lia. simpl pred.
      assert (Hu : desired d g u = desired d g (S u)) by (apply desired_since; fold c; lia).
      destruct (started d g u) as [b0 |] eqn:E.
      - exists b0. split; auto. destruct (le_lt_dec c b0) as [Hge |]; auto. exfalso.
        destruct (update_run M g u b0 E) as [Hb0 _].
        assert (Hne : started d g (S u) <> Some b0). { rewrite Hs. intro H. injection H as H. lia. }
        destruct (update_ends M g u b0 E Hne) as [r [Hr Ha]]. apply Hd. rewrite Ha.
        symmetry. apply desired_since. fold c. lia.
      - exfalso. pose proof (update_due M g u E) as Ha. apply Hd.
        destruct (applied_stays M g u E) as [H | H]; congruence.
    Qed.

    (** M2, lemma 3: the update for a change ends at most 2 eps after it. *)
    Lemma daemon_update_soon i g t c : is_task p i -> segments p i <> 0 -> gpu p i = g -> update s g t = Some c ->
      t < c + 2 * eps p i.
    Proof.
      intros Hi Hseg Hg Hu. rewrite (sees_update M) in Hu. destruct (started d g t) as [b |] eqn:E; try discriminate.
      injection Hu as <-. pose proof (update_eps M i g t b Hi Hseg Hg E) as Ht. pose proof (change_le g b) as Hle.
      destruct (Nat.eq_dec (last_change s g b) b) as [-> | Hne]. lia.
      destruct (start_waits g b (start_of g t b E) ltac:(lia)) as [b0 [Hb0 E0]].
      pose proof (update_eps M i g (pred b) b0 Hi Hseg Hg E0). lia.
    Qed.

    (** Changes coalesce: two updates serve different changes. *)
    Lemma same_change g t t' b b' : started d g t = Some b -> started d g t' = Some b' ->
      last_change s g b = last_change s g b' -> b = b'.
    Proof.
      assert (W : forall t t' b b', started d g t = Some b -> started d g t' = Some b' ->
        last_change s g b = last_change s g b' -> b < b' -> False).
      { clear t t' b b'. intros t t' b b' E E' Hc Hlt. pose proof (change_le g b) as Hle.
        destruct (start_waits g b' (start_of g t' b' E') ltac:(lia)) as [b0 [Hb0 E0]].
        destruct (update_run M g (pred b') b0 E0) as [_ Hr].
        assert (Hb : started d g b = Some b0) by (apply Hr; lia).
        rewrite (start_of g t b E) in Hb. injection Hb as Hb. lia. }
      intros E E' Hc. destruct (lt_eq_lt_dec b b') as [[L | L] | L]; auto; exfalso.
      - apply (W t t' b b'); auto.
      - apply (W t' t b' b); auto.
    Qed.

    (** M2: what serves one change takes at most eps. *)
    Lemma daemon_update_length i g c t : is_task p i -> segments p i <> 0 -> gpu p i = g ->
      cnt (update_is s g c) 0 t <= eps p i.
    Proof.
      intros Hi Hseg Hg. destruct (cnt (update_is s g c) 0 t) as [| n] eqn:E0. lia. rewrite <- E0.
      destruct (cnt_pos (update_is s g c) 0 t ltac:(lia)) as [t1 [_ H1]].
      assert (Hspec : forall u, update_is s g c u = true -> exists b, started d g u = Some b /\ last_change s g b = c).
      { intros u H. unfold update_is in H. rewrite (sees_update M) in H.
        destruct (started d g u) as [b |]; try discriminate. apply Nat.eqb_eq in H. exists b. auto. }
      destruct (Hspec t1 H1) as [b [Eb Hb]].
      eapply Nat.le_trans; [apply (cnt_inside_length _ 0 t b (b + eps p i)) | lia].
      intros u _ Hu. destruct (Hspec u Hu) as [b' [Eb' Hb']].
      assert (b' = b) by (apply (same_change g u t1); auto; congruence). subst b'.
      pose proof (update_eps M i g u b Hi Hseg Hg Eb'). destruct (update_run M g u b Eb'). lia.
    Qed.

    Lemma daemon_update_serial g t c c' : update s g t = Some c -> c < c' <= t -> changes s g c' = true ->
      update s g (pred c') = Some c.
    Proof.
      intros Hu Hc Hch. rewrite (sees_update M) in *. destruct (started d g t) as [b |] eqn:E; try discriminate.
      injection Hu as <-. destruct (update_run M g t b E) as [Hb Hr].
      assert (b < c'). { destruct (le_lt_dec c' b) as [H |]; auto. pose proof (change_since g b c' Hch H). lia. }
      rewrite (Hr (pred c')) by lia. reflexivity.
    Qed.

    (** Theorem 14, lemma 3: while a window is open the desired set changes only with the holder. *)
    Lemma daemon_desired_changes g c : changes s g c = true ->
      changed s g c \/ (before s g c = None /\ holder s g c = None).
    Proof.
      intro Hc. rewrite (sees_change M), negb_true_iff, N.eqb_neq in Hc. destruct c as [| b]. simpl in Hc. congruence.
      unfold changed, before. simpl in *. destruct (holder s g (S b)) as [[[n m] j] |] eqn:E1.
      - left. intro H. symmetry in H. apply Hc. rewrite (desired_held M _ _ _ _ _ E1), (desired_held M _ _ _ _ _ H).
        reflexivity.
      - destruct (holder s g b) as [h |]; auto. left. discriminate.
    Qed.

    (** ** M3 *)

    (** Theorem 7, M3: the holder is served while no update is in progress, whatever else is enabled. *)
    Theorem holder_served i k j t : is_task p i -> holder s (gpu p i) t = Some (i, k, j) ->
      update s (gpu p i) t = None -> device_ready s i k t = true -> serves d (gpu p i) t = Some i.
    Proof.
      intros Hi Hh Hu Hd. rewrite (sees_update M) in Hu. destruct (started d (gpu p i) t) eqn:Es; try discriminate.
      destruct (holder_open _ _ M _ _ _ _ _ Hh) as [_ [_ Hp]].
      assert (Ha : applied d (gpu p i) t = on d i).
      { rewrite (update_due M _ _ Es). apply (desired_held M _ _ _ _ _ Hh). }
      destruct (gpu_serves M (gpu p i) t i Es) as [y [Hy [Hon Hwork]]].
      { rewrite Ha. apply (on_own M); auto. }
      { apply (window_work M i k j); auto. }
      rewrite Ha in Hon. destruct (on_other M i y Hi Hon) as [-> | [[Hty Hrank] | Hidle]]; auto; exfalso.
      - destruct (work_in_window M _ _ _ Hwork Hty) as [Hg [k' [j' [Hp' _]]]].
        destruct (holder_highest _ _ M y k' j' t Hty Hp') as [h [m [j2 [Hh' Hr]]]].
        rewrite Hg, Hh in Hh'. injection Hh' as <- <- <-. destruct Hr as [-> | Hr]; lia.
      - rewrite Hidle in Hwork; congruence.
    Qed.

    (** Theorems 7 and 14: GPUs of the daemon with K and A obey the model. *)
    Theorem daemon_gpus : gpus_obey p s.
    Proof.
      constructor.
      - apply M.
      - intros i k j t Hi Hp Hd. eapply Nat.le_lt_trans; [| apply (served_left M i k j t Hi Hp Hd)].
        apply cnt_mono. intros u _ H. unfold device_unit in H. rewrite !andb_true_iff in H. destruct H as [[Hh Hq] Hr].
        unfold holds in Hh. destruct (holder s (gpu p i) u) as [[[h m] j'] |] eqn:E; try discriminate.
        rewrite !andb_true_iff, !Nat.eqb_eq in Hh. destruct Hh as [[-> ->] ->].
        unfold quiet in Hq. destruct (update s (gpu p i) u) eqn:Eu; try discriminate.
        unfold served. rewrite (holder_served i k j u Hi E Eu Hr), Nat.eqb_refl, Hr. simpl. rewrite andb_true_r.
        destruct (holder_open _ _ M _ _ _ _ _ E) as [_ [_ Hw]]. unfold in_window. rewrite Hw. apply Nat.eqb_refl.
      - apply daemon_desired_changes.
      - intros g t c Hu. rewrite (sees_update M) in Hu. destruct (started d g t) as [b |] eqn:E; try discriminate.
        injection Hu as <-. destruct (update_run M g t b E). pose proof (change_le g b). split. lia. apply change_last.
      - apply daemon_update_soon.
      - apply daemon_update_length.
      - apply daemon_update_serial.
    Qed.

    (** An update begins at once, or when the one in progress ends. *)
    Lemma daemon_update_at_once g t c u : update s g t = Some c -> c <= u <= t ->
      exists c', update s g u = Some c' /\ c' <= c.
    Proof.
      intros Hu Hc. rewrite (sees_update M) in *. destruct (started d g t) as [b |] eqn:E; try discriminate.
      injection Hu as <-. destruct (update_run M g t b E) as [Hb Hr].
      destruct (le_lt_dec b u) as [Hle | Hlt].
      - rewrite (Hr u) by lia. eauto.
      - destruct (start_waits g b (start_of g t b E) ltac:(lia)) as [b0 [Hb0 E0]].
        destruct (update_run M g (pred b) b0 E0) as [_ Hr0]. rewrite (Hr0 u) by lia. eexists. split. reflexivity.
        pose proof (change_le g b0). lia.
    Qed.

    Corollary daemon_model : cores_obey p s -> obeys p s.
    Proof. intro Hc. constructor; auto. apply daemon_gpus. Qed.

    Corollary daemon_boost_model : boost_cores_obey p s -> boost_obeys p s.
    Proof. intro Hc. constructor; auto. apply daemon_gpus. apply daemon_update_at_once. Qed.
  End Daemon.

  (** ** (f) *)

  (** What an update costs: it disables contexts that are applied and not desired, and enables those that are desired
      and not applied, each of [all] once. *)
  Definition switching (all : list nat) (disable enable : nat -> nat) (from to : N) :=
    total all (fun x => (if has from x && negb (has to x) then disable x else 0)
      + (if has to x && negb (has from x) then enable x else 0)).

  (** (f) of theorem 7: whatever the two sets, disabling all contexts and enabling all contexts costs no less. *)
  Lemma switching_cost all disable enable from to :
    switching all disable enable from to <= total all disable + total all enable.
  Proof.
    unfold switching. rewrite <- total_add. apply total_mono. intros x _. destruct (has from x), (has to x); simpl; lia.
  Qed.

  (** And the larger of the two is enough if one set contains the other. *)
  Lemma one_way_cost all disable enable from to :
    (forall x, has to x = true -> has from x = true) \/ (forall x, has from x = true -> has to x = true) ->
    switching all disable enable from to <= max (total all disable) (total all enable).
  Proof.
    intros [H | H]; eapply Nat.le_trans;
      [| apply Nat.le_max_l | | apply Nat.le_max_r]; apply total_mono; intros x _; specialize (H x);
      destruct (has from x), (has to x); simpl; lia || (exfalso; discriminate (H eq_refl)).
  Qed.

  (** ** Without K and A *)

  (** The first M2: only a change of the holder starts an update. [changes] plays no other role, so the first hypothesis
      defines it. *)
  Record holder_obeys : Prop := {
    holder_tasks :> tasks_obey p s;
    holder_cores :> cores_obey p s;
    holder_changes : forall g c, changes s g c = true <-> changed s g c;
    holder_device_left : forall i k j t, is_task p i -> phase s i k t = Win j -> device_ready s i k t = true ->
      cnt (device_unit p s i k j) 0 t < device (segment_at p i j);
    holder_update_cause : forall g t c, update s g t = Some c -> c <= t /\ changed s g c;
    holder_update_soon : forall i g t c, is_task p i -> segments p i <> 0 -> gpu p i = g -> update s g t = Some c ->
      t < c + 2 * eps p i;
    holder_update_length : forall i g c t, is_task p i -> segments p i <> 0 -> gpu p i = g ->
      cnt (update_is s g c) 0 t <= eps p i;
    holder_update_serial : forall g t c c', update s g t = Some c -> c < c' <= t -> changed s g c' ->
      update s g (pred c') = Some c }.

  (** The model contains the one without K and A. *)
  Theorem holder_model : holder_obeys -> obeys p s.
  Proof.
    intro M. constructor; [constructor |]; try apply M.
    - intros g c H. left. apply (holder_changes M). auto.
    - intros g t c H. destruct (holder_update_cause M g t c H) as [H1 H2]. split; auto. right.
      apply (holder_changes M). auto.
    - intros g t c c' H Hc Hch. apply (holder_update_serial M g t); auto. apply (holder_changes M). auto.
  Qed.
End Contexts.
