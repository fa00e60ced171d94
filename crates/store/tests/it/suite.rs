//! What any store owes the kernel. Each test takes a [`Fixture`], so that every store runs the same ones:
//! [`conformance!`] makes the tests of one store.

pub(crate) mod appends;
pub(crate) mod callbacks;
pub(crate) mod dead_letters;
pub(crate) mod feed;
pub(crate) mod hub;
pub(crate) mod idempotency;
pub(crate) mod keeping;
pub(crate) mod lineage;
pub(crate) mod lists;
pub(crate) mod logs;
pub(crate) mod model;
pub(crate) mod outbox;
pub(crate) mod survey;
pub(crate) mod waiting;
pub(crate) mod webhooks;

use switchboard_engine::store::Store;
use switchboard_engine::store::callbacks::CallbackStore;
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::store::webhooks::WebhookStore;

/// A place where a store can be opened, and opened again.
pub(crate) trait Fixture {
    type Store: Store + WebhookStore + CallbackStore + HubStore;

    /// An empty place.
    fn new() -> Self;

    /// Opens the store; the one opened before must have been closed or dropped.
    fn open(&self) -> Self::Store;
}

/// One test per promise, for one kind of store.
macro_rules! conformance {
    ($fixture:ty: $($module:ident { $($test:ident),* $(,)? })*) => {
        $($(
            #[tokio::test]
            async fn $test() {
                crate::suite::$module::$test(<$fixture as crate::suite::Fixture>::new()).await;
            }
        )*)*
    };
}
pub(crate) use conformance;

/// Every promise.
macro_rules! conformance_suite {
    ($fixture:ty) => {
        crate::suite::conformance! { $fixture:
            appends {
                events_are_numbered_without_gaps,
                an_append_needs_the_version_and_the_fence_and_a_task_that_goes_on,
                what_an_append_does_not_name_stays_as_it_is,
                a_task_that_was_never_created_is_missing,
                an_append_may_change_only_the_row,
                concurrent_owners_never_share_a_number,
                names_of_any_spelling_come_back,
            }
            logs {
                a_task_is_read_from_its_newest_snapshot,
                a_log_is_read_from_any_number,
                a_log_is_read_in_portions,
            }
            lists {
                a_list_shows_its_owners_tasks_newest_first,
                filters_narrow_page_and_total,
                pages_cover_everything_once,
                hidden_tasks_are_not_listed,
                a_list_carries_what_a_load_would,
                a_page_is_loaded_in_portions,
                tasks_that_are_gone_are_left_out,
                a_conversation_is_found_newest_first,
                the_newest_note_of_a_conversation_is_found,
            }
            lineage {
                a_task_says_where_it_comes_from,
                live_children_are_found_by_their_parent,
                a_tree_is_read_upwards_and_as_a_whole_and_is_limited,
                the_last_agent_of_a_conversation_is_that_of_its_newest_root,
            }
            survey {
                operators_see_tasks_of_all_owners_page_by_page,
                operators_find_tasks_by_way_tree_and_prefix,
                waiting_questions_are_found_oldest_first,
            }
            idempotency {
                a_key_finds_its_send,
                a_key_is_taken_once_per_scope,
                a_refused_append_takes_no_key,
                keys_of_an_earlier_process_are_found_and_taken,
            }
            waiting {
                unowned_tasks_are_unfinished,
                a_restart_voids_leases,
                parked_tasks_expire,
                the_census_counts_states_and_parked_tasks,
            }
            keeping {
                ended_tasks_go_by_age,
                the_oldest_go_beyond_a_cap,
                live_tasks_stay_whatever_the_caps,
                an_evicted_task_leaves_nothing_behind,
                a_clean_end_keeps_the_epoch,
                a_crash_raises_the_epoch_and_loses_nothing,
                a_store_has_a_secret_of_its_own_and_keeps_it,
                a_closed_store_says_so,
            }
            feed {
                events_and_journal_lines_are_in_one_order,
                readers_of_all_rows_hear_of_each_commit,
                a_cursor_before_a_deleted_row_has_a_gap,
                a_cursor_of_a_lost_epoch_has_a_gap,
                a_task_that_a_consumer_has_not_read_stays,
                a_journal_line_that_is_too_large_is_refused,
            }
            hub {
                a_page_is_written_once_with_all_that_follows_from_it,
                sums_jobs_and_tasks_are_counted_for_their_readers,
                a_job_is_claimed_once_and_finished_by_its_claimer,
                a_job_that_is_owed_again_while_it_runs_is_run_again,
                jobs_without_a_time_are_found_and_deleted_by_their_names,
                a_registration_is_replaced_by_one_that_knows_its_version,
                a_cooldown_is_taken_with_an_append_and_refuses_the_next,
            }
            webhooks {
                a_webhook_is_set_with_an_append,
                one_webhook_too_many_is_refused_and_leaves_nothing,
                a_webhook_that_goes_on_keeps_its_place_when_it_is_replaced,
                a_webhook_at_its_end_begins_again_when_it_is_replaced,
                what_is_under_way_counts_unless_its_webhook_was_set_to_something_else,
                what_waits_is_due_when_its_webhook_is_set_again_the_same,
                a_direct_reply_goes_to_no_webhook,
                a_deleted_webhook_is_gone_for_good,
                webhooks_with_something_to_tell_are_found,
                operators_see_webhooks,
            }
            outbox {
                deliveries_come_one_after_the_other,
                a_step_that_comes_too_late_does_nothing,
                what_is_due_comes_in_its_order,
                a_paused_webhook_is_not_due,
                a_disabled_webhook_is_told_nothing,
                an_endpoint_is_released_at_once,
                the_newest_hundred_deliveries_are_kept,
                a_crash_keeps_webhooks_and_deliveries,
                secrets_are_rotated,
            }
            dead_letters {
                what_is_given_up_is_kept_and_sent_once_more,
                what_was_delivered_can_be_sent_once_more,
                what_was_never_tried_is_given_up,
                dead_letters_go_by_age_and_by_number,
                a_task_stays_while_a_webhook_has_to_read_it,
                what_is_held_is_not_kept_at_the_cost_of_others,
                no_more_is_given_up_than_there_is_too_much,
                dead_letters_outlive_their_task,
            }
            callbacks {
                a_callback_belongs_to_its_task,
                the_newest_updates_are_kept,
                an_update_is_known_by_its_name,
                callbacks_go_with_their_task,
            }
            model { random_appends_do_what_a_list_would }
        }
    };
}
pub(crate) use conformance_suite;
