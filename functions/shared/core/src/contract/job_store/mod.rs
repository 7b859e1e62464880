//! The contract of [`JobStore`]: one file per trait.

mod admissions;
mod attempts;
mod checkpoints;
mod completions;
mod dead_letters;
mod fixtures;
mod jobs;
mod leases;
mod splits;
mod tallies;
mod wake_ups;

use super::run_checks;
use crate::ports::JobStore;

/// Checks a [`JobStore`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn job_store<S: JobStore>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        admissions::the_owners_ceiling_is_exact,
        admissions::the_types_ceiling_is_exact,
        admissions::the_systems_ceiling_is_exact,
        admissions::a_ceiling_of_nothing_admits_nobody,
        admissions::of_two_hundred_at_once_exactly_ten_are_admitted,
        admissions::a_full_ceiling_leaves_nothing_behind,
        admissions::a_full_ceiling_tells_when_jobs_under_it_ended,
        admissions::only_the_last_ends_are_remembered,
        admissions::a_repeated_request_finds_its_job,
        admissions::a_repeated_request_finds_its_job_at_a_ceiling_too,
        admissions::a_key_used_for_something_else_is_refused,
        admissions::a_key_belongs_to_one_owner,
        admissions::a_key_is_forgotten_when_it_expires,
        admissions::of_one_request_repeated_at_once_one_job_comes_out,
    );
    run_checks!(
        make,
        jobs::a_new_job_reads_back_with_its_spec,
        jobs::what_is_not_there_is_not_found,
        jobs::an_owner_sees_their_own_jobs_newest_first,
        jobs::pages_follow_each_other_without_gap_or_repetition,
        jobs::a_list_holds_only_what_the_filter_wants,
        jobs::a_page_is_full_however_many_jobs_the_filter_passes_over,
        jobs::an_expired_job_is_not_listed_but_can_be_read,
    );
    run_checks!(
        make,
        leases::the_first_lease_makes_a_waiting_job_run,
        leases::a_held_lease_is_refused_until_it_runs_out,
        leases::a_run_that_lost_the_reply_gets_its_lease_again,
        leases::a_lease_is_for_the_present_attempt,
        leases::only_its_holder_releases_a_lease,
    );
    run_checks!(
        make,
        splits::tallies_are_counted_one_after_the_other_under_the_lease,
        splits::nothing_is_counted_once_the_job_is_stopped,
        splits::nothing_is_counted_once_the_split_is_finished,
        splits::a_paused_split_is_dispatched_and_gives_the_lease_back,
        splits::the_end_of_the_split_gives_the_lease_back,
        splits::a_split_that_ends_early_says_so,
    );
    run_checks!(
        make,
        tallies::a_tally_reads_back_and_is_put_once,
        tallies::a_range_of_tallies_is_in_order_and_without_those_that_are_not_there,
        tallies::a_chunk_is_counted_once_whoever_commits_it,
        tallies::a_run_that_lost_the_reply_has_won,
        tallies::a_chunk_of_a_tally_that_is_not_there_is_not_counted,
        tallies::sixty_four_chunks_committed_twice_at_once_count_once_each,
        tallies::a_tally_is_folded_once,
        tallies::tallies_folded_at_once_are_all_in,
        tallies::the_number_of_tallies_can_be_noted_again,
        tallies::attempts_are_counted_apart,
        tallies::a_tally_closed_without_its_rest_takes_no_more_chunks,
        tallies::a_tally_is_closed_only_as_it_was_seen,
        tallies::a_sign_of_life_moves_a_tallys_time_and_nothing_else,
        tallies::a_sign_of_life_makes_no_tally,
    );
    run_checks!(
        make,
        checkpoints::a_chunk_has_no_checkpoint_until_it_is_moved,
        checkpoints::a_checkpoint_reads_back_as_it_was_moved,
        checkpoints::a_checkpoint_moves_on_from_where_it_is_and_from_nowhere_else,
        checkpoints::a_checkpoint_that_is_not_there_begins_with_its_first_move,
        checkpoints::a_move_whose_reply_was_lost_is_recognised,
        checkpoints::of_ten_moves_at_once_one_is_made,
        checkpoints::every_chunk_has_a_checkpoint_of_its_own,
    );
    run_checks!(
        make,
        attempts::a_job_is_stopped_once,
        attempts::a_stopped_job_is_looked_at_from_then_on,
        attempts::a_stop_whose_reply_was_lost_is_recognised,
        attempts::a_cancelled_job_is_cancelling_whoever_takes_it_up,
        attempts::another_attempt_is_not_stopped,
        attempts::an_ended_job_begins_its_next_attempt,
        attempts::a_redriven_job_ends_and_is_redriven_as_any_other,
        attempts::a_redrive_takes_slots_and_its_end_gives_them_back,
        attempts::a_redrive_is_under_every_ceiling,
        attempts::a_redrive_whose_reply_was_lost_is_recognised,
        attempts::a_job_is_redriven_only_as_it_was_seen,
        attempts::a_job_that_is_not_there_is_not_redriven,
        attempts::of_ten_redrives_at_once_one_takes_effect,
    );
    run_checks!(
        make,
        completions::a_job_ends_once,
        completions::an_ended_job_gives_its_slots_back,
        completions::a_completion_whose_reply_was_lost_is_recognised,
        completions::a_job_stopped_meanwhile_does_not_end_as_seen,
        completions::a_stopped_job_ends_with_its_stop,
        completions::a_job_nobody_took_up_does_not_end,
        completions::an_ended_job_is_neither_leased_nor_stopped,
        completions::of_ten_completions_at_once_one_takes_effect,
        completions::a_paused_composition_leaves_its_state_and_gives_the_lease_back,
    );
    run_checks!(
        make,
        dead_letters::a_job_without_dead_letters_has_none,
        dead_letters::dead_letters_read_back_oldest_first,
        dead_letters::a_dead_letter_recorded_again_stays_as_it_was,
        dead_letters::many_dead_letters_are_listed_from_the_oldest_on,
    );
    run_checks!(
        make,
        wake_ups::a_job_is_due_once_its_time_has_come,
        wake_ups::every_job_is_due_in_one_shard,
        wake_ups::those_due_longest_come_first,
        wake_ups::a_stopped_job_is_due_at_once,
        wake_ups::an_ended_job_is_not_due_and_cannot_be_claimed,
        wake_ups::a_claimed_job_is_due_again_later,
        wake_ups::a_job_is_claimed_only_as_it_was_seen_to_be_due,
        wake_ups::of_ten_sweeps_at_once_one_claims_a_job,
    );
}
