//! C28: a NOTIFY for each batch.

use super::job::Job;
use crate::pg::server::notify;
use crate::policy::batch_payload;

/// Tells listeners, at commit, that rows of the table were deleted.
pub(crate) fn send(job: &Job, rows: u64) {
    if let Some(channel) = job.policy.label.notify.as_deref().filter(|_| rows > 0) {
        notify::send(channel, &batch_payload(&job.name, rows));
    }
}
