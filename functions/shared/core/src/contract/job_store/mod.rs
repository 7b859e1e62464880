//! The contract of [`JobStore`].

mod admission;
mod checkpoint;
mod completion;
mod counting;
mod dead_letters;
mod listing;
mod redrive;
mod split;
mod story;
mod wake;

use super::run_checks;
use crate::ports::JobStore;

/// Checks a [`JobStore`].
///
/// # Panics
/// Where the adapter breaks a promise of the port.
pub async fn job_store<S: JobStore>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        admission::a_new_job_reads_back_with_its_spec,
        admission::what_is_not_there_is_not_found,
        admission::the_owners_ceiling_is_exact,
        admission::the_types_ceiling_is_exact,
        admission::the_systems_ceiling_is_exact,
        admission::a_ceiling_of_nothing_admits_nobody,
        admission::of_two_hundred_at_once_exactly_ten_are_admitted,
        admission::a_full_ceiling_leaves_nothing_behind,
        admission::a_full_ceiling_tells_when_jobs_under_it_ended,
        admission::only_the_last_ends_are_remembered,
        admission::a_repeated_request_finds_its_job,
        admission::a_repeated_request_finds_its_job_at_a_ceiling_too,
        admission::a_key_used_for_something_else_is_refused,
        admission::a_key_belongs_to_one_owner,
        admission::a_key_is_forgotten_when_it_expires,
        admission::of_one_request_repeated_at_once_one_job_comes_out,
    );
    run_checks!(
        make,
        listing::an_owner_sees_their_own_jobs_newest_first,
        listing::pages_follow_each_other_without_gap_or_repetition,
        listing::a_list_holds_only_what_the_filter_wants,
        listing::a_page_is_full_however_many_jobs_the_filter_passes_over,
        listing::an_expired_job_is_not_listed_but_can_be_read,
    );
    run_checks!(
        make,
        split::the_first_lease_makes_a_waiting_job_run,
        split::a_held_lease_is_refused_until_it_runs_out,
        split::a_run_that_lost_the_reply_gets_its_lease_again,
        split::a_lease_is_for_the_present_attempt,
        split::only_its_holder_releases_a_lease,
        split::tallies_are_counted_one_after_the_other_under_the_lease,
        split::nothing_is_counted_once_the_job_is_stopped,
        split::nothing_is_counted_once_the_split_is_finished,
        split::a_paused_split_is_dispatched_and_gives_the_lease_back,
        split::the_end_of_the_split_gives_the_lease_back,
        split::a_split_that_ends_early_says_so,
        split::a_job_is_stopped_once,
        split::a_stopped_job_is_looked_at_from_then_on,
        split::a_stop_whose_reply_was_lost_is_recognised,
        split::a_cancelled_job_is_cancelling_whoever_takes_it_up,
        split::another_attempt_is_not_stopped,
    );
    run_checks!(
        make,
        counting::a_tally_reads_back_and_is_put_once,
        counting::a_range_of_tallies_is_in_order_and_without_those_that_are_not_there,
        counting::a_chunk_is_counted_once_whoever_commits_it,
        counting::a_run_that_lost_the_reply_has_won,
        counting::a_chunk_of_a_tally_that_is_not_there_is_not_counted,
        counting::sixty_four_chunks_committed_twice_at_once_count_once_each,
        counting::a_tally_closed_without_its_rest_takes_no_more_chunks,
        counting::a_tally_is_closed_only_as_it_was_seen,
        counting::a_tally_is_folded_once,
        counting::tallies_folded_at_once_are_all_in,
        counting::the_number_of_tallies_can_be_noted_again,
        counting::attempts_are_counted_apart,
        counting::a_sign_of_life_moves_a_tallys_time_and_nothing_else,
        counting::a_sign_of_life_makes_no_tally,
    );
    run_checks!(
        make,
        checkpoint::a_chunk_has_no_checkpoint_until_it_is_moved,
        checkpoint::a_checkpoint_reads_back_as_it_was_moved,
        checkpoint::a_checkpoint_moves_on_from_where_it_is_and_from_nowhere_else,
        checkpoint::a_checkpoint_that_is_not_there_begins_with_its_first_move,
        checkpoint::a_move_whose_reply_was_lost_is_recognised,
        checkpoint::of_ten_moves_at_once_one_is_made,
        checkpoint::every_chunk_has_a_checkpoint_of_its_own,
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
        wake::a_job_is_due_once_its_time_has_come,
        wake::every_job_is_due_in_one_shard,
        wake::those_due_longest_come_first,
        wake::a_stopped_job_is_due_at_once,
        wake::an_ended_job_is_not_due_and_cannot_be_claimed,
        wake::a_claimed_job_is_due_again_later,
        wake::a_job_is_claimed_only_as_it_was_seen_to_be_due,
        wake::of_ten_sweeps_at_once_one_claims_a_job,
    );
    run_checks!(
        make,
        redrive::an_ended_job_begins_its_next_attempt,
        redrive::a_redriven_job_ends_and_is_redriven_as_any_other,
        redrive::a_redrive_takes_slots_and_its_end_gives_them_back,
        redrive::a_redrive_is_under_every_ceiling,
        redrive::a_redrive_whose_reply_was_lost_is_recognised,
        redrive::a_job_is_redriven_only_as_it_was_seen,
        redrive::a_job_that_is_not_there_is_not_redriven,
        redrive::of_ten_redrives_at_once_one_takes_effect,
    );
    run_checks!(
        make,
        completion::a_job_ends_once,
        completion::an_ended_job_gives_its_slots_back,
        completion::a_completion_whose_reply_was_lost_is_recognised,
        completion::a_job_stopped_meanwhile_does_not_end_as_seen,
        completion::a_stopped_job_ends_with_its_stop,
        completion::a_job_nobody_took_up_does_not_end,
        completion::an_ended_job_is_neither_leased_nor_stopped,
        completion::of_ten_completions_at_once_one_takes_effect,
        completion::a_paused_composition_leaves_its_state_and_gives_the_lease_back,
    );
}
