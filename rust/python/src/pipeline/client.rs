//! Settings of the clients that the pipeline opens.

use std::path::PathBuf;

use aeron_client::Context;
use pyo3::prelude::*;

/// Settings of a client, read from a Python dictionary. The key `aeron_dir` is required, but its value may be `None`.
/// All other keys are optional.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub struct ClientSettings {
    aeron_dir: Option<PathBuf>,
    #[pyo3(default)]
    driver_timeout_ms: Option<u64>,
    #[pyo3(default)]
    client_name: Option<String>,
    #[pyo3(default)]
    resource_linger_duration_ns: Option<u64>,
    #[pyo3(default)]
    idle_sleep_duration_ns: Option<u64>,
    #[pyo3(default)]
    pre_touch_mapped_memory: Option<bool>,
}

impl ClientSettings {
    /// Returns a text that differs for different settings.
    pub fn name(&self) -> String {
        format!("{self:?}")
    }

    /// Returns a context with these settings. If a setting is missing, its environment variable is used, otherwise its
    /// default.
    pub fn to_context(&self) -> Result<Context, aeron_client::Error> {
        fn replace<T: Clone>(setting: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                setting.clone_from(value);
            }
        }
        let mut context = Context::from_env()?;
        replace(&mut context.aeron_dir, &self.aeron_dir);
        replace(&mut context.driver_timeout_ms, &self.driver_timeout_ms);
        replace(&mut context.client_name, &self.client_name);
        replace(
            &mut context.resource_linger_duration_ns,
            &self.resource_linger_duration_ns,
        );
        replace(
            &mut context.idle_sleep_duration_ns,
            &self.idle_sleep_duration_ns,
        );
        replace(
            &mut context.pre_touch_mapped_memory,
            &self.pre_touch_mapped_memory,
        );
        Ok(context)
    }
}
