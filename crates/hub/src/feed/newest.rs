//! Of each task its newest item, for screens that show what is newest.

use std::collections::{BTreeMap, HashMap};

use switchboard_a2a::TaskId;

use super::item::Item;

/// Items without their payloads, each in place of older ones of its task, in the order in which they came.
#[derive(Default)]
pub(crate) struct NewestOfTasks {
    items: BTreeMap<u64, Item>,
    /// Where the item of a task is: a busy server has thousands of them in a quarter of a second.
    of_task: HashMap<TaskId, u64>,
    next: u64,
}

impl NewestOfTasks {
    pub(crate) fn add(&mut self, mut item: Item) {
        item.payload = None;
        if let Some(task) = &item.source.task_id
            && let Some(older) = self.of_task.insert(task.clone(), self.next)
        {
            self.items.remove(&older);
        }
        self.items.insert(self.next, item);
        self.next += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn into_items(self) -> Vec<Item> {
        self.items.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_engine::store::feed::FeedCursor;

    use super::*;

    /// Looking through all items for each would take minutes here.
    #[test]
    fn an_item_replaces_the_older_one_of_its_task_among_any_number_of_others() {
        const TASKS: usize = 200_000;
        let mut newest = NewestOfTasks::default();
        for (round, number) in (0..2).flat_map(|round| (0..TASKS).map(move |number| (round, number))) {
            let mut item = Item::gap(FeedCursor::BEGINNING);
            item.topic = format!("{round}.{number}");
            item.source.task_id = Some(format!("task-{number}").into());
            newest.add(item);
        }
        newest.add(Item::gap(FeedCursor::BEGINNING));
        let topics: Vec<String> = newest.into_items().into_iter().map(|item| item.topic).collect();
        assert_eq!((topics.len(), topics.last().map(String::as_str)), (TASKS + 1, Some("gap")));
        assert!(topics[..TASKS].iter().enumerate().all(|(number, topic)| *topic == format!("1.{number}")));
    }
}
