"""Browsers' sessions: they end after their time and at logout, and logging in is limited."""

from __future__ import annotations

from serving import Serve, Served

from tacit.serve.admission import SESSION_SECONDS, Limits

OURS = {"origin": "http://127.0.0.1:8470"}


def login(served: Served, secret: str) -> int:
    return served.nobody.post("/v1/login", json={"key": secret}, headers=OURS).status_code


def test_a_session_ends_after_its_time(served: Served) -> None:
    now = 1_000.0
    served.state.logins.clock = lambda: now
    assert login(served, served.keys["ana"]) == 204
    # The browser would forget its cookie by then; somebody who has copied it does not.
    copied = {"cookie": "; ".join(f"{name}={value}" for name, value in served.nobody.cookies.items())}
    now += SESSION_SECONDS - 1
    assert served.nobody.get("/v1/whoami", headers=copied).json()["name"] == "ana"
    now += 1
    assert served.nobody.get("/v1/whoami", headers=copied).status_code == 401


def test_a_session_ends_at_logout(served: Served) -> None:
    assert login(served, served.keys["ana"]) == 204
    cookie = dict(served.nobody.cookies)
    assert served.nobody.post("/v1/logout", headers=OURS).status_code == 204
    served.nobody.cookies.update(cookie)  # the browser forgot it; somebody else did not
    assert served.nobody.get("/v1/whoami").status_code == 401


def test_logins_are_limited(serve: Serve) -> None:
    served = serve(limits=Limits(rate=0.001, burst=3))
    served.state.traffic.clock = lambda: 0.0
    tried = [login(served, f"tacit_{i:043}") for i in range(10)]
    assert set(tried) == {401, 429}
    assert tried == sorted(tried)  # once refused, refused until time has passed
    assert served.ana.get("/v1/whoami").status_code == 200  # and nobody with a key suffers for it
