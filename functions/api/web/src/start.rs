//! Start-up: reads the settings once, then serves requests.

use std::time::Duration;

use rowmill_api::client_config::{ClientConfig, ClientLimits};
use rowmill_aws::host::http::Access;
use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::ports::{BoxError, DirectTransfers};
use rowmill_settings::{FileLimits, JobTargets, SettingsGroup};
use rowmill_targets::Targets;
use upload::limits::UploadLimits;

use crate::config::sign_in;
use crate::declaration::FUNCTION;
use crate::handler::{self, Web};
use crate::limits::PageSettings;
use crate::policy::{Origins, origin};

/// Runs `web` for these job types and those of [`JobTargets`]. A binary with its own job types passes them here.
pub async fn start(job_types: JobTypes) -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let (access, page) = (runtime.settings::<Access>()?, runtime.settings::<PageSettings>()?);
    if !page.token_origin.is_empty() && origin(&page.token_origin).is_none() {
        return Err(format!("PageTokenOrigin is `{}`; it must be a scheme and a host", page.token_origin).into());
    }
    let targets = Targets::parse(&runtime.settings::<JobTargets>()?.json, &job_types.names())?;
    let job_types = job_types.with(targets.types());
    let bucket_origin = bucket_origin(&*ports.transfers.get()?).await?;
    let live_url = rowmill_settings::LIVE_URL.read().ok();
    let origins = [&bucket_origin, &access.issuer, &page.token_origin].into_iter().chain(&live_url);
    let origins = Origins::of(origins.map(String::as_str));
    let config = ClientConfig {
        live: live_url.is_some(),
        sign_in: sign_in(&access.issuer, [&access.read_scope, &access.write_scope], &page),
        bucket_origin,
        limits: ClientLimits {
            direct_max_bytes: UploadLimits::defaults().direct_max_bytes,
            upload_max_bytes: runtime.settings::<FileLimits>()?.max_bytes,
        },
        job_types: job_types.names().into_iter().map(str::to_owned).collect(),
        job_types_without_file: job_types.names_without_file().into_iter().map(str::to_owned).collect(),
    };
    let web = Web { config, policy: origins.policy() };
    serve::api(&runtime, web, handler::handle).await
}

/// The origin of presigned links: that of one which is signed here and never used. It needs no permission.
async fn bucket_origin(transfers: &dyn DirectTransfers) -> Result<String, BoxError> {
    let link = transfers.presign_get("uploads/", "text/plain", "none", Duration::from_secs(60)).await?;
    origin(&link.url).ok_or_else(|| "presigned links have no origin".into())
}
