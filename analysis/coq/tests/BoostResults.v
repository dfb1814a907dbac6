(* SPDX-License-Identifier: Apache-2.0 *)
(** The checker of theorem 11. Each test is a name and a Boolean; tests/run counts them. *)

From Coq Require Import List NArith Bool Arith String.
From Gpuseg Require Import Recurrence Checker BoostChecker.
From GpusegTests Require Import Certificates Results.
Import ListNotations.
Open Scope string_scope.

(** A certificate with other bounds R, and F for each segment. *)
Definition with_windows (fs : list N) (l : list segment_line) :=
  map (fun '(f, s) => SegmentLine (s_host s) (s_device s) (s_total s) f) (combine fs l).
Definition with_bounds (c : certificate) (bounds : list (N * list N)) :=
  Certificate (c_gpus c) (map (fun '((r, fs), t) =>
    TaskLine (t_core t) (t_gpu t) (t_process t) (t_prio t) (t_gprio t) (t_period t) (t_deadline t) (t_jitter t)
      (t_blocking t) (t_cpu t) (t_eps t) r (with_windows fs (t_segs t))) (combine bounds (c_tasks c))).

(** The least R and F of theorem 11 for the sets of Certificates.v. gcaps-boost-tight-suspend prints the same R for
    gcaps-xavier, autoware and manipulation. *)
Open Scope N_scope.
Definition boosted := [
  ("adversary", with_bounds adversary [(4600000, [2200000])]);
  ("autoware", with_bounds autoware [(3000000, []); (1000000, []); (17520000, [490000; 2930000]); (38020000,
     [30420000]); (55700000, []); (20700000, [])]);
  ("disb_a", with_bounds disb_a [(3870000, [2770000])]);
  ("disb_c", with_bounds disb_c [(3880000, [2780000])]);
  ("disb_d", with_bounds disb_d [(4800000, [3700000]); (9500000, [8400000]); (14200000, [13100000]); (18900000,
     [17800000]); (23600000, [22500000])]);
  ("disb_e", with_bounds disb_e [(4800000, [3700000]); (9500000, [8400000]); (14200000, [13100000]); (18900000,
     [17800000]); (23600000, [22500000])]);
  ("gcaps_xavier", with_bounds gcaps_xavier [(16100000, [10000000]); (28000000, [24000000]); (70200000, []);
     (57600000, [41000000]); (76000000, [59000000])]);
  ("manipulation", with_bounds manipulation [(200000, []); (9300000, [6300000])]);
  ("random_a", with_bounds random_a [(2740637, [795704]); (7415855, [2521322]); (11844311, [5084016; 4962262]);
     (14134062, [10792960]); (21202491, [12971621; 12875927]); (13976042, []); (17205148, [])]);
  ("random_b", with_bounds random_b [(7845568, [544555; 964117]); (4059291, []); (13758541, [2385318; 1347220]);
     (24409469, [12063428; 9432146]); (14816173, []); (33979316, [10716560; 10181863])])].
Close Scope N_scope.

(** Two threads of one core, each with a GPU of its own: two of the three windows of the lower one block the other. *)
Definition two_windows := Certificate [GpuLine 1 0; GpuLine 1 0]
  [TaskLine 1 0 0 30 30 100 100 0 0 10 1 27 [SegmentLine 2 4 6 6];
   TaskLine 1 1 1 20 20 100 100 0 0 10 1 66 [SegmentLine 1 4 5 7; SegmentLine 5 4 9 11; SegmentLine 3 4 7 9]].

Definition results : list (string * bool) :=
  exact "boost: " boost_check boost_failures boosted
  ++ [("boost: charges the two longest host parts below", N.eqb (boosted_right_hand_side two_windows 0) 26)].

Set Printing Width 200.
Set Printing Depth 10000.
Eval vm_compute in results.
