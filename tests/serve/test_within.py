"""The dial over HTTP and on the page: the price first, then the answer, by whoever may spend."""

from __future__ import annotations

import re

from serving import WHO, Serve
from starlette.testclient import TestClient

from tacit.serve.app import make_app
from tacit.serve.page import routes

WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
BASE = "http://127.0.0.1:8470"


def test_the_price_is_said_and_the_answer_is_as_sharp_as_asked(serve: Serve) -> None:
    served = serve(questions=1000)
    plain = served.ask(WOMEN)
    assert served.ask(WOMEN)["value"] == plain["value"]  # remembered by the server
    body = {"question": WOMEN, "within": 9}
    price = served.ana.post("/v1/people/cost", json=body).json()
    assert (price["known"], price["cost_at_most"]["gdp"] > 0) == (False, True)
    assert served.rea.post("/v1/people/ask", json=body).json()["error"]["code"] == "would_spend"
    sharp = served.ana.post("/v1/people/ask", json=body).json()["answer"]
    assert sharp["error"] <= 9 < plain["error"]
    assert (sharp["cost"], sharp["kind"]) == (price["cost_at_most"], "count")
    again = served.rea.post("/v1/people/ask", json=body).json()["answer"]  # known now, for who may not spend too
    assert (again["value"], again["cost"]) == (sharp["value"], {"gdp": 0.0})
    later = served.ask({"count": {"sex": "F"}})
    assert later["value"] == plain["value"]
    assert "a sharper answer was bought" in later["note"]


def test_a_quota_counts_and_nonsense_is_refused(serve: Serve) -> None:
    served = serve(questions=1000)
    body = {"question": WOMEN, "within": 4}
    assert served.mia.post("/v1/people/ask", json=body).json()["error"]["code"] == "quota"  # a tenth of the budget
    assert served.mia.post("/v1/people/ask", json=body | {"within": 12}).status_code == 200
    for wrong, status in ((0, 422), (-1, 422), ("50", 400), (None, 400)):
        assert served.ana.post("/v1/people/ask", json=body | {"within": wrong}).status_code == status
    refused = served.ana.post("/v1/people/ask", json={"question": {"mean": "age", "where": {"sex": "F"}}, "within": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_query")
    refused = served.ana.post("/v1/people/ask", json=body | {"within": 0.1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "budget_exhausted")
    assert "which buys ±" in refused.json()["error"]["message"]


def test_the_page_offers_sharper_answers_at_their_price(serve: Serve) -> None:
    served = serve(questions=1000)
    client = TestClient(make_app(served.state, pages=routes()), base_url=BASE)
    client.post("/login", data={"key": served.keys["ana"]}, headers={"origin": BASE})
    asked = {"way": "sql", "sql": WOMEN, "do": "ask"}
    shown = client.post("/data/people/ask", data=asked, headers={"origin": BASE}).text
    offers = re.findall(r'name="within" value="([\d.]+)">± [\d,.]+ for ([\d.]+) % of the budget<', shown)
    assert offers
    width, share = offers[0]
    before = served.people.session.spent
    shown = client.post("/data/people/ask", data=asked | {"within": width}, headers={"origin": BASE}).text
    spent = served.people.session.spent - before
    assert abs(100 * spent.atoms / served.people.session.total.atoms - float(share)) < 0.01 * float(share)
    assert f"--within {width}" in shown
    assert f"within={width}" in shown
    wrong = client.post("/data/people/ask", data=asked | {"within": "much"}, headers={"origin": BASE})
    assert wrong.status_code == 422
    reader = TestClient(make_app(served.state, pages=routes()), base_url=BASE)
    reader.post("/login", data={"key": served.keys["rea"]}, headers={"origin": BASE})
    shown = reader.post("/data/people/ask", data=asked, headers={"origin": BASE}).text
    assert 'name="within"' not in shown


def test_the_page_offers_nothing_that_a_quota_forbids(serve: Serve) -> None:
    served = serve(questions=20)
    shown = dict[str, str]()
    for who in ("ana", "mia"):
        client = TestClient(make_app(served.state, pages=routes()), base_url=BASE)
        client.post("/login", data={"key": served.keys[who]}, headers={"origin": BASE})
        asked = {"way": "sql", "sql": WOMEN, "do": "ask"}
        shown[who] = client.post("/data/people/ask", data=asked, headers={"origin": BASE}).text
    prices = {
        who: [float(one) for one in re.findall(r"for ([\d.]+) % of the budget<", text)] for who, text in shown.items()
    }
    quota = WHO["mia"][1]
    assert quota is not None
    assert max(prices["ana"]) > 100 * quota
    assert all(price <= 100 * quota for price in prices["mia"])
