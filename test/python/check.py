"""What the installed package does with the model of package.py: sum = x + y, half = y / 2."""

import concurrent.futures
import sys

import numpy as np

import partita


def fails(text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except partita.Error as error:
        assert text in str(error), error
        return
    raise AssertionError(f"no error that says: {text}")


def data(samples, seed):
    random = np.random.default_rng(seed)
    return random.random((samples, 3, 8), np.float32), random.random((samples, 8), np.float32)


def is_right(x, y, outputs):
    return np.array_equal(outputs["sum"], x + y[:, None]) and np.array_equal(outputs["half"], y / np.float32(2))


def check_places(model):
    """Results keep their memory as long as somebody has them, or a part of them. Then others get it."""
    large = []
    for seed in range(8):
        x, y = data(1000, seed)
        large.append((x, y, model.run(x=x, y=y)))
    assert all(is_right(*each) for each in large)
    places = {outputs["sum"].ctypes.data for _, _, outputs in large}
    assert len(places) == 8
    part, expected = large[0][2]["sum"][3:5], large[0][2]["sum"][3:5].copy()
    del large
    again = set()
    for seed in range(8):
        x, y = data(1000, 100 + seed)
        outputs = model.run(x=x, y=y)
        again.add(outputs["sum"].ctypes.data)
        assert is_right(x, y, outputs) and np.array_equal(part, expected)
    assert again < places, (again, places)
    # Not of each size that there ever was.
    for samples in range(1000, 1040):
        x, y = data(samples, 1)
        assert is_right(x, y, model.run(x=x, y=y))
    assert sum(map(len, model._places._kept.values())) == model._places._count == 6


with partita.Model(sys.argv[1], threads=1, pin=False, batch_delay=0.001) as model:
    assert [(p.name, p.type, p.shape) for p in model.inputs] == [("x", "float32", (None, 3, 8)), ("y", "float32", (None, 8))], model.inputs
    assert [p.name for p in model.outputs] == ["sum", "half"]
    assert model.step_samples == 6 and model.remark == ""
    for samples in (1, 2, 5, 6, 7, 40):
        x, y = data(samples, samples)
        assert is_right(x, y, model.run(x=x, y=y)), samples
        assert is_right(x, y, model.run({"x": x, "y": y}))
    computed = model.profile()
    assert computed.samples == 2 * (1 + 2 + 5 + 6 + 7 + 40) and computed.steps >= 2 * (4 + 2 + 7), computed
    assert all(0 < seconds < 60 for seconds in computed.busy_s.values()), computed
    x, y = data(4, 1)
    # An array that does not lie as the model wants it is copied.
    assert is_right(x, y, model.run(x=np.asfortranarray(x), y=np.repeat(y, 2, axis=1)[:, ::2]))

    def work(seed):
        x, y = data(1 + seed % 9, seed)
        return is_right(x, y, model.run(x=x, y=y))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    tickets = []
    for seed in range(20):
        x, y = data(3, seed)
        tickets.append((x, y, model.submit(x=x, y=y)))
    assert all(is_right(x, y, ticket.wait()) for x, y, ticket in reversed(tickets))
    assert is_right(*tickets[0][:2], tickets[0][2].wait())  # once more
    for seed in range(5):
        model.submit(x=x, y=y)  # for nobody

    check_places(model)
    fails("is given as float64", model.run, x=x.astype(np.float64), y=y)
    fails("'y' is not given", model.run, x=x)
    fails("the model has 2 inputs (x, y): give each by its name", model.run, x)
    fails("no input 'z'", model.run, x=x, y=y, z=y)
    fails("have 3 and 2 samples", model.run, x=x, y=y[:2])
    fails("has 0 entries", model.run, x=x[:0], y=y[:0])
    assert is_right(x, y, model.run(x=x, y=y))
with partita.Model(sys.argv[2], threads=1, pin=False) as single:
    assert np.array_equal(single.run(y[:, :4])["y"], -y[:, :4])
    assert np.array_equal(single.run(x=y[:, :4])["y"], -y[:, :4])
fails("closed", model.run, x=x, y=y)
fails("nowhere.partita", partita.Model, "nowhere.partita")
print("right")
