"""The options of who keeps the limits; all but one are the reference's and oslo.limit's."""

from __future__ import annotations

from oslo_config import cfg

from moorage.core.config import Options

STORED = "nova.quota.DbQuotaDriver"
UNIFIED = "nova.quota.UnifiedLimitsDriver"

OPTIONS: Options = {
    "quota": [
        cfg.StrOpt(
            "driver",
            default=STORED,
            choices=[
                (STORED, "Limits are set through the Compute API, and are those of [quota] where none are."),
                (UNIFIED, "Limits are Keystone's unified limits, which [oslo_limit] gives access to."),
            ],
            help="Who keeps the limits of projects. The names are those of the reference.",
        ),
        cfg.StrOpt(
            "unified_limits_resource_strategy",
            default="require",
            choices=["require", "ignore"],
            help="What unified_limits_resource_list is: resources that nobody gets any of before a limit is "
            "registered for them (require), or the only ones of which everybody gets any number then "
            "(ignore).",
        ),
        cfg.ListOpt(
            "unified_limits_resource_list",
            default=["servers"],
            help="Resources, as Keystone's limits call them: servers, class:VCPU, class:MEMORY_MB, class:… "
            "for any other resource class, server_key_pairs, server_groups, server_group_members, "
            "server_metadata_items, server_injected_files, server_injected_file_content_bytes, "
            "server_injected_file_path_bytes.",
        ),
        cfg.FloatOpt(
            "unified_limits_cache_seconds",
            default=10.0,
            min=0.0,
            help="Seconds for which a process goes by limits that it has read from Keystone; 0 to read them "
            "for each request.",
        ),
    ],
    "oslo_limit": [
        cfg.StrOpt("endpoint_id", help="The id of Compute's endpoint, whose service and region limits have."),
        cfg.StrOpt("endpoint_service_name", help="Without endpoint_id: the name of the service."),
        cfg.StrOpt(
            "endpoint_service_type", default="compute", help="Without endpoint_id: the type of the service."
        ),
        cfg.StrOpt("endpoint_region_name", help="Without endpoint_id: the region, if there are several."),
        cfg.StrOpt(
            "endpoint_interface",
            default="public",
            choices=["public", "publicURL", "internal", "internalURL", "admin", "adminURL"],
            help="Without endpoint_id: which endpoint of the service.",
        ),
    ],
}
