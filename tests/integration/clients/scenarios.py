"""What people do in Horizon, each as a series of its pages."""

from __future__ import annotations

from tests.integration.clients.dashboard import Dashboard

INSTANCES = "/project/instances/"
KEY_PAIRS = "/project/key_pairs/"
SERVER_GROUPS = "/project/server_groups/"
_STEP = "//div[contains(@class, 'step') and not(contains(@class, 'ng-hide'))]"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBLM9mOMYB4Z6mRBHyZk0gwjKoyGVRrxkQUmqzCHHRZp somebody"

CHANGES = (
    ("pause", "Paused"),
    ("pause", "Running"),
    ("suspend", "Suspended"),
    ("suspend", "Running"),
    ("shelve", "Shelved Offloaded"),
    ("shelve", "Running"),
    ("stop", "Shut Down"),
    ("start", "Running"),
    ("soft_reboot", "Running"),
    ("reboot", "Running"),
)
"""An action of an instance, and what its row says afterwards. Who chooses the same again takes it back."""


def launch(board: Dashboard, name: str, *, image: str, flavor: str) -> None:
    """The whole wizard, on the only network that there is."""
    board.open(INSTANCES)
    board.press("#instances__action_launch-ng")
    board.check("the wizard")
    board.fill("input[name=name]", name)
    for step, choice in (("Source", image), ("Flavor", flavor)):
        _go_to(board, step)
        board.press(f"{_STEP}//tr[contains(., '{choice}')]//button")
    for step in ("Networks", "Security Groups", "Key Pair", "Server Groups", "Scheduler Hints", "Metadata"):
        _go_to(board, step)
    board.press("button.finish")
    board.check(f"launch {name}")
    board.await_row(INSTANCES, name, "Active", "Running")


def _go_to(board: Dashboard, step: str) -> None:
    board.press(f"//ul[contains(@class, 'nav-pills')]//a[contains(., '{step}')]")
    board.check(f"the wizard's {step}")


def change_states(board: Dashboard, name: str) -> None:
    board.open(INSTANCES)
    for action, state in CHANGES:
        board.act(name, action)
        board.await_row(INSTANCES, name, state)


def change_the_server(board: Dashboard, name: str, *, image: str, flavor: str) -> None:
    """Everything that has a form, or a word of its own."""
    board.open(INSTANCES)
    board.act(name, "snapshot", name=f"{name}-snapshot")
    assert f"{name}-snapshot" in board.open("/project/images")
    board.open(INSTANCES)
    board.act(name, "lock")
    board.act(name, "unlock")
    board.act(name, "edit", name=f"{name}-renamed")
    board.await_row(INSTANCES, f"{name}-renamed")
    board.act(name, "rescue")
    board.await_row(INSTANCES, name, "Rescue")
    board.act(name, "unrescue")
    board.await_row(INSTANCES, name, "Active")
    board.act(name, "rebuild", image=image)
    board.await_row(INSTANCES, name, "Active", "Running")
    board.act(name, "resize", flavor=flavor)
    board.await_row(INSTANCES, name, "Confirm")
    board.act(name, "confirm")
    board.await_row(INSTANCES, name, "Active", flavor)


def look_at_the_server(board: Dashboard, server_id: str) -> None:
    """Its page's tabs."""
    page = f"{INSTANCES}{server_id}/"
    assert server_id in board.open(page)
    assert server_id in board.open(f"{page}?tab=instance_details__log"), "there is no console log"
    board.open(f"{page}?tab=instance_details__interfaces")
    assert "create" in board.open(f"{page}?tab=instance_details__audit").lower()
    board.open(f"{page}?tab=instance_details__console")
    board.await_frame("#console_embed", server_id)


def delete(board: Dashboard, name: str) -> None:
    board.open(INSTANCES)
    board.act(name, "delete")
    board.await_no_row(INSTANCES, name)


def handle_key_pairs(board: Dashboard) -> None:
    board.open(KEY_PAIRS)
    board.act_on_table("keypairs__action_import", name="imported", key_type="SSH Key", public_key=PUBLIC_KEY)
    board.await_row(KEY_PAIRS, "imported", "ssh")
    assert "imported" in board.open(f"{KEY_PAIRS}imported/")
    board.open(KEY_PAIRS)
    board.act("imported", "delete")
    board.await_no_row(KEY_PAIRS, "imported")


def handle_server_groups(board: Dashboard) -> None:
    """Whose page is one of Angular's."""
    board.open(SERVER_GROUPS)
    board.press("//button[contains(., 'Create Server Group')]")
    board.fill("input[name=name]", "apart")
    board.browser.run(
        "const list = document.querySelector('select[name=policy]'); list.selectedIndex = 1;"
        "list.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    board.press("//div[contains(@class, 'modal-footer')]//button[contains(@class, 'btn-primary')]")
    board.await_row(SERVER_GROUPS, "apart")
    board.press("//a[contains(., 'apart')]")
    board.check("a server group")
    board.open(SERVER_GROUPS)
    board.press("//tr[contains(., 'apart')]//button[contains(., 'Delete')]")
    board.press("//div[contains(@class, 'modal-footer')]//button[contains(@class, 'btn-danger')]")
    board.await_no_row(SERVER_GROUPS, "apart")


# ---------------------------------------------------------------- an administrator's

HYPERVISORS = "/admin/hypervisors/"
AGGREGATES = "/admin/aggregates/"
FLAVORS = "/admin/flavors/"
DEFAULTS = "/admin/defaults/"
ALL_INSTANCES = "/admin/instances/"


def look_around(board: Dashboard, host: str) -> None:
    """Pages that only show something."""
    board.open("/admin/")
    assert host in board.open(HYPERVISORS)
    board.press(f"//table[contains(@id, 'hypervisors')]//a[contains(., '{host}')]")
    assert host in board.check(f"hypervisor {host}")
    services = board.open("/admin/info/?tab=system_info__nova_services")
    for program in ("nova-compute", "nova-conductor"):
        assert program in services


def take_a_host_out_of_service(board: Dashboard, host: str) -> None:
    page = f"{HYPERVISORS}?tab=hypervisor_info__compute_host"
    board.open(page)
    board.act(host, "disable", reason="a new disk")
    board.await_row(page, host, "Disabled")
    board.act(host, "enable")
    board.await_row(page, host, "Enabled")


def handle_aggregates(board: Dashboard, host: str) -> None:
    board.open(AGGREGATES)
    board.act_on_table("host_aggregates__action_create", name="rack-1", availability_zone="zone-1")
    board.await_row(AGGREGATES, "rack-1", "zone-1")
    for those in ("available_members", "members"):
        board.start("rack-1", "manage")
        entry = f"//ul[starts-with(@class, '{those}')]//ul[contains(., '{host}')]"
        board.press(f"{entry}//a[@href='#add_remove']")
        board.submit(f"move hosts from {those}")
        assert (host in board.row_text("rack-1")) == (those == "available_members")
    board.act("rack-1", "update", name="rack-2")
    board.await_row(AGGREGATES, "rack-2", "zone-1")
    board.act("rack-2", "delete")
    board.await_no_row(AGGREGATES, "rack-2")


def handle_flavors(board: Dashboard) -> None:
    board.open(FLAVORS)
    board.act_on_table(
        "flavors__action_create", name="horizon.small", vcpus="1", memory_mb="256", disk_gb="1"
    )
    board.await_row(FLAVORS, "horizon.small", "256")
    board.act("horizon.small", "delete")
    board.await_no_row(FLAVORS, "horizon.small")


def change_quotas(board: Dashboard, project_id: str) -> None:
    """The defaults, then those of one project."""
    board.open(DEFAULTS)
    board.press("//a[contains(., 'Update Default Quotas')]")
    board.fill_in({"key_pairs": "77"})
    board.submit("update the default quotas")
    board.await_row(DEFAULTS, "Key Pairs", "77")
    board.open(f"/identity/{project_id}/update_quotas/")
    board.fill("[name=server_groups]", "7")
    board.press("input[type=submit], button[type=submit].btn-primary")
    board.check("update a project's quotas")


def move_a_server(board: Dashboard, name: str) -> None:
    board.await_row(ALL_INSTANCES, name, "Active")
    board.act(name, "migrate")
    board.await_row(ALL_INSTANCES, name, "Confirm")
    board.act(name, "confirm")
    board.await_row(ALL_INSTANCES, name, "Active")
    board.act(name, "live_migrate")
    board.await_row(ALL_INSTANCES, name, "Active")
