"""Untrusted paths: what is removed, what is refused, and that a refused job removes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cacheserver.errors import JobFailed
from cacheserver.files.paths import check_future, existing
from cacheserver.files.removal import clear_paths, remove_paths
from cacheserver.files.threads import Stop, Stopped
from cacheserver.options import Progress
from tests.support.machine.disks import small_disk


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A data directory with links to a directory beside it, which must stay untouched."""
    for name in ("precious/kept", "data/a/1", "data/a/b/2", "data/c", "data/.dot"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    data = tmp_path / "data"
    (data / "out").symlink_to(tmp_path / "precious")
    (data / "a" / "out").symlink_to(tmp_path / "precious")
    (data / "in").symlink_to("a")
    return data


def kept(base: Path) -> bool:
    return (base.parent / "precious" / "kept").read_text() == "precious/kept"


def names(base: Path) -> set[str]:
    return {str(path.relative_to(base)) for path in base.rglob("*")}


REMOVED = {
    "a file": (["{base}/c"], {"c"}),
    "a tree with a link that leads out": (["{base}/a"], {"a", "a/1", "a/b", "a/b/2", "a/out"}),
    "a link is removed, not what it names": (["{base}/out"], {"out"}),
    "several": (["{base}/a/b", "{base}/c"], {"a/b", "a/b/2", "c"}),
    "with slashes and dots": (["{base}//a/./b/"], {"a/b", "a/b/2"}),
    "one within the other": (["{base}/a/b", "{base}/a/b"], {"a/b", "a/b/2"}),
}


@pytest.mark.parametrize(("paths", "gone"), REMOVED.values(), ids=REMOVED)
def test_rmr_removes(base: Path, paths: list[str], gone: set[str]) -> None:
    before = names(base)
    remove_paths(base, tuple(path.format(base=base) for path in paths), Stop(), Progress())
    assert before - names(base) == gone
    assert kept(base)


REFUSED = {
    "the root": ("{base}", "name what is in it"),
    "the root with a slash": ("{base}/", "name what is in it"),
    "the root by a dot": ("{base}/.", "name what is in it"),
    "beside": ("{base}x/c", "is not inside"),
    "above": ("{base}/../precious", "component that is not allowed"),
    "above and back": ("{base}/../data/c", "component that is not allowed"),
    "relative": ("data/c", "is not inside"),
    "empty": ("", "is not inside"),
    "elsewhere": ("/etc", "is not inside"),
    "through a link that leads out": ("{base}/out/kept", "symbolic link"),
    "through a link that stays": ("{base}/in/1", "symbolic link"),
    "deep through a link": ("{base}/a/out/kept", "symbolic link"),
    "a file as a directory": ("{base}/c/d", "cannot be opened"),
    "missing": ("{base}/nothing", "does not exist"),
    "missing deep": ("{base}/no/thing", "does not exist"),
    "a nul": ("{base}/c\0", "component that is not allowed"),
}


@pytest.mark.parametrize(("path", "message"), REFUSED.values(), ids=REFUSED)
def test_rmr_refuses_and_removes_nothing(base: Path, path: str, message: str) -> None:
    before = names(base)
    with pytest.raises(JobFailed, match=message):
        remove_paths(base, (f"{base}/c", path.format(base=base)), Stop(), Progress())
    assert names(base) == before
    assert kept(base)


CLEARED = {
    "all": (["{base}/*"], {"a", "a/1", "a/b", "a/b/2", "a/out", "c", "out", "in"}),
    "the directory itself": (["{base}"], {"a", "a/1", "a/b", "a/b/2", "a/out", "c", "out", "in"}),
    "one below": (["{base}/a/*"], {"a/1", "a/b", "a/b/2", "a/out"}),
    "one by name": (["{base}/a"], {"a", "a/1", "a/b", "a/b/2", "a/out"}),
}


@pytest.mark.parametrize(("paths", "gone"), CLEARED.values(), ids=CLEARED)
def test_clear_leaves_the_directory_and_dot_files(base: Path, paths: list[str], gone: set[str]) -> None:
    before = names(base)
    clear_paths((base,), tuple(path.format(base=base) for path in paths), Stop(), Progress())
    assert before - names(base) == gone
    assert kept(base)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/*", "in none of the cache directories"),
        ("{base}x/*", "in none of the cache directories"),
        ("{base}/../precious/*", "component that is not allowed"),
        ("{base}/out/*", "symbolic link"),
        ("{base}/a*", "pattern"),
        ("{base}/*/x", "pattern"),
        ("{base}/nothing/*", "does not exist"),
        ("{base}/nothing", "does not exist"),
    ],
)
def test_clear_refuses_and_removes_nothing(base: Path, path: str, message: str) -> None:
    before = names(base)
    with pytest.raises(JobFailed, match=message):
        clear_paths((base,), (f"{base}/*", path.format(base=base)), Stop(), Progress())
    assert names(base) == before
    assert kept(base)


def test_another_file_system_is_not_entered(base: Path) -> None:
    with small_disk(base / "a" / "disk", 1) as disk:
        (disk / "file").write_text("x")
        with pytest.raises(JobFailed, match="another file system"):
            remove_paths(base, (f"{base}/a",), Stop(), Progress())
        with pytest.raises(JobFailed, match="another file system"):
            remove_paths(base, (f"{base}/a/disk/file",), Stop(), Progress())
        assert (disk / "file").exists()


def test_deep_trees_need_no_deep_stack(tmp_path: Path) -> None:
    deep = tmp_path / "data" / "x"
    for _ in range(400):
        deep /= "d"
    deep.mkdir(parents=True)
    remove_paths(tmp_path / "data", (f"{tmp_path}/data/x",), Stop(), Progress())
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.parametrize("work", [remove_paths, lambda base, *rest: clear_paths((base,), *rest)])
def test_removal_stops_on_request(base: Path, work: Callable[[Path, tuple[str, ...], Stop, Progress], None]) -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        work(base, (f"{base}/a",), stop, Progress())


def test_removed_files_and_links_are_counted_and_directories_are_not(base: Path) -> None:
    progress = Progress()
    (base / "a" / "link").symlink_to("b")
    remove_paths(base, (f"{base}/a", f"{base}/c"), Stop(), progress)
    assert progress == Progress(files_done=5)
    clear_paths((base,), (f"{base}/.dot",), Stop(), progress)
    assert progress == Progress(files_done=6)


def test_a_destination_need_not_exist_but_must_stay_inside(base: Path) -> None:
    for path in ("", "/", "/new", "/new/deep", "/a/new", "/a/b"):
        check_future(base, f"{base}{path}")
    for path in ("/out/new", "/a/out", "/../x", "/in/x"):
        with pytest.raises(JobFailed):
            check_future(base, f"{base}{path}")


def test_an_existing_path_is_normalized(base: Path) -> None:
    assert existing(base, f"{base}//a/./b/") == base / "a" / "b"
    assert existing(base, f"{base}/") == base
