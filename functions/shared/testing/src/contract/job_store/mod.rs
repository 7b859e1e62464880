//! The contract of [`JobStore`]: one file per trait, and `dedupes` for the dedupe keys of admissions.

mod admissions;
mod attempts;
mod checkpoints;
mod completions;
mod dead_letters;
mod dedupes;
mod erasures;
mod fixtures;
mod jobs;
mod permits;
mod tallies;
mod updates;
mod waits;
mod wake_ups;

use super::run_checks;
use rowmill_core::ports::JobStore;

/// Checks a [`JobStore`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn job_store<S: JobStore>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        admissions::the_ceiling_of_an_owner_is_exact,
        admissions::the_ceiling_of_a_type_is_exact,
        admissions::the_ceiling_of_the_system_is_exact,
        admissions::a_job_that_is_created_again_takes_one_slot,
        admissions::a_ceiling_of_zero_admits_no_job,
        admissions::two_hundred_concurrent_requests_admit_exactly_ten_jobs,
        admissions::a_reached_limit_is_seen_before_a_job_is_created,
        admissions::a_refused_job_leaves_nothing_behind,
        admissions::a_refusal_has_the_recent_ends_under_its_ceiling,
        admissions::only_the_most_recent_ends_are_kept,
        admissions::a_repeated_request_finds_its_job,
        admissions::a_repeated_request_finds_its_job_even_at_a_ceiling,
        admissions::a_key_used_for_another_request_is_refused,
        admissions::a_key_belongs_to_one_owner,
        admissions::a_key_is_forgotten_when_it_expires,
        admissions::concurrent_repeats_of_a_request_create_one_job,
    );
    run_checks!(
        make,
        dedupes::a_second_job_with_a_dedupe_key_finds_the_first,
        dedupes::a_dedupe_key_finds_its_job_even_at_a_ceiling,
        dedupes::a_dedupe_key_belongs_to_one_owner,
        dedupes::a_dedupe_key_is_forgotten_when_it_expires,
        dedupes::only_the_job_that_was_seen_is_replaced,
        dedupes::one_of_ten_concurrent_requests_with_a_dedupe_key_creates_a_job,
        dedupes::one_of_ten_concurrent_requests_replaces_a_job,
        dedupes::a_repeated_request_finds_its_job_before_the_dedupe_key_counts,
        dedupes::a_key_is_remembered_for_the_job_of_another_request,
        dedupes::a_refused_job_takes_no_dedupe_key,
    );
    run_checks!(
        make,
        jobs::a_new_job_reads_back_with_its_spec,
        jobs::missing_rows_are_not_found,
        jobs::an_owner_sees_their_own_jobs_newest_first,
        jobs::pages_have_no_gap_and_no_repetition,
        jobs::a_list_has_only_the_jobs_that_match_the_filter,
        jobs::a_list_by_outcome_has_only_the_completed_jobs_with_it,
        jobs::a_page_is_full_regardless_of_how_many_jobs_the_filter_excludes,
        jobs::an_expired_job_is_not_listed_but_can_be_read,
    );
    run_checks!(
        make,
        updates::an_update_makes_the_row_the_next_one,
        updates::a_row_that_has_moved_since_it_was_seen_is_not_updated,
        updates::a_missing_job_is_not_updated,
        updates::one_of_ten_concurrent_updates_is_written,
        updates::ten_concurrent_transitions_take_effect_one_after_the_other,
        updates::a_paused_job_gives_its_shared_slots_back_and_takes_them_again,
        updates::shared_slots_are_given_back_once,
    );
    run_checks!(
        make,
        tallies::a_tally_reads_back_and_is_put_once,
        tallies::a_range_of_tallies_is_in_order_and_leaves_out_missing_ones,
        tallies::a_chunk_is_counted_once_regardless_of_who_commits_it,
        tallies::a_run_that_lost_the_reply_has_won,
        tallies::chunks_of_one_tally_are_committed_together_or_not_at_all,
        tallies::all_64_chunks_of_a_tally_can_be_committed_together,
        tallies::commits_that_are_not_of_one_tally_are_invalid,
        tallies::a_chunk_of_a_missing_tally_is_not_counted,
        tallies::concurrent_double_commits_of_64_chunks_count_each_chunk_once,
        tallies::a_tally_is_folded_once,
        tallies::the_usage_of_closed_tallies_adds_up,
        tallies::tallies_that_are_folded_concurrently_are_all_counted,
        tallies::the_number_of_tallies_can_be_set_again,
        tallies::attempts_are_counted_separately,
        tallies::a_tally_closed_without_its_rest_accepts_no_further_chunks,
        tallies::a_tally_that_has_changed_since_it_was_read_is_not_closed,
        tallies::a_sign_of_life_changes_only_the_time_of_a_tally,
        tallies::a_sign_of_life_creates_no_tally,
        tallies::what_waits_for_a_tally_is_noted_as_sent,
    );
    run_checks!(
        make,
        permits::a_lease_takes_its_permit,
        permits::a_permit_is_taken_only_as_seen_and_only_with_its_lease,
        permits::a_permit_is_given_back_only_as_seen,
    );
    run_checks!(
        make,
        checkpoints::a_chunk_has_no_checkpoint_before_its_first_move,
        checkpoints::a_checkpoint_reads_back_as_it_was_written,
        checkpoints::a_checkpoint_moves_only_from_its_current_revision,
        checkpoints::a_missing_checkpoint_is_created_by_its_first_move,
        checkpoints::a_move_whose_reply_was_lost_is_recognised,
        checkpoints::one_of_ten_concurrent_moves_wins,
        checkpoints::every_chunk_has_a_checkpoint_of_its_own,
    );
    run_checks!(
        make,
        attempts::a_redrive_starts_the_next_attempt_of_an_ended_job,
        attempts::a_redriven_job_can_end_and_be_redriven_again,
        attempts::a_redrive_takes_slots_and_its_end_returns_them,
        attempts::a_redrive_respects_every_ceiling,
        attempts::a_redrive_whose_reply_was_lost_is_recognised,
        attempts::a_job_that_has_changed_since_it_was_read_is_not_redriven,
        attempts::a_missing_job_is_not_redriven,
        attempts::one_of_ten_concurrent_redrives_takes_effect,
    );
    run_checks!(
        make,
        completions::a_job_ends_once,
        completions::an_ended_job_returns_its_slots,
        completions::a_completion_whose_reply_was_lost_is_recognised,
        completions::a_job_that_was_stopped_since_it_was_read_does_not_end,
        completions::a_stopped_job_ends_with_its_stop,
        completions::a_job_that_nobody_has_taken_up_ends_at_once,
        completions::a_job_that_was_taken_up_since_it_was_read_does_not_end_at_once,
        completions::one_of_ten_concurrent_completions_takes_effect,
        completions::an_untaken_job_does_not_end_if_its_deadline_has_moved_since_it_was_read,
        completions::a_job_that_ends_keeps_limits_that_it_got_since_it_was_read,
        completions::a_job_that_was_paused_or_resumed_since_it_was_read_does_not_end,
        completions::a_paused_job_can_complete,
        completions::a_job_without_shared_slots_gives_back_only_its_owners,
    );
    run_checks!(
        make,
        dead_letters::a_job_without_dead_letters_has_none,
        dead_letters::dead_letters_read_back_oldest_first,
        dead_letters::a_dead_letter_that_is_recorded_again_does_not_change,
        dead_letters::no_more_dead_letters_are_listed_than_asked_for,
    );
    run_checks!(
        make,
        waits::a_waiting_job_takes_the_slot_of_its_owner_alone_until_it_goes_on,
        waits::a_waiting_job_is_listed_under_all_that_it_waits_for,
        waits::the_first_spec_that_is_found_counts,
    );
    run_checks!(
        make,
        erasures::a_deleted_job_is_due_to_be_erased_and_for_nothing_else,
        erasures::a_job_with_a_time_of_its_own_is_due_when_that_is_over,
        erasures::nobody_sees_a_deleted_job,
        erasures::all_rows_of_a_deleted_job_are_erased_and_no_others,
        erasures::a_job_that_is_not_deleted_is_not_erased,
    );
    run_checks!(
        make,
        wake_ups::a_job_is_due_from_its_wake_time_on,
        wake_ups::every_job_is_due_in_one_shard,
        wake_ups::jobs_that_have_been_due_longest_are_listed_first,
        wake_ups::a_stopped_job_is_due_at_once,
        wake_ups::an_ended_job_is_not_due,
        wake_ups::a_claimed_job_is_due_again_later,
        wake_ups::a_job_is_put_off_only_if_its_wake_time_is_unchanged,
    );
}
