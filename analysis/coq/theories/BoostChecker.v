(* SPDX-License-Identifier: Apache-2.0 *)
(** The checker for theorem 11. The certificate is that of Checker.v; its windows are measured from the end of their
    openings on. *)

From Coq Require Import List NArith Bool.
From Gpuseg Require Import Recurrence BoostRecurrence Checker.
Import ListNotations.

Definition is_zero (n : N) := N.eqb n 0.

Section Check.
  Variable c : certificate.

  Definition boosted_right_hand_side i :=
    boosted_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat is_zero (set_of c) i.
  Definition boosted_window_right_hand_side i s :=
    boosted_window_rhs N 0%N N.add N.mul N.sub N.min ceil_div N.of_nat (set_of c) i s (length_bound s).

  Definition boost_failures := failures_with c boosted_right_hand_side boosted_window_right_hand_side.
  Definition boost_check : bool := match boost_failures with [] => true | _ => false end.
End Check.
