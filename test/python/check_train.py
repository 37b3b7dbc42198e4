"""What the installed package learns, beside what `partita-run --train` has learned (package.py): check_train.py FOLDER."""

import concurrent.futures
import pathlib
import shutil
import sys

import numpy as np

import partita

FOLDER = pathlib.Path(sys.argv[1])
IMAGES, LABELS = np.load(FOLDER / "image.npy"), np.load(FOLDER / "label.npy")
STEP, SEED, OPTIONS = 8, 5, {"threads": 1, "pin": False}


def fails(text, call, *arguments, kind=partita.Error, **named):
    try:
        call(*arguments, **named)
    except partita.Error as error:
        assert text in str(error) and type(error) is kind, f"{type(error)}: {error}"
        return
    raise AssertionError(f"no error that says: {text}")


def batch(number):
    """The samples of a step, in the order of partita-run --order in-order."""
    begin = number * STEP % len(IMAGES)
    return {"image": IMAGES[begin : begin + STEP], "label": LABELS[begin : begin + STEP]}


def files(checkpoint):
    return {path.name: path.read_bytes() for path in sorted(checkpoint.iterdir())}


def states(trainer):
    return {name: trainer.state(name).tobytes() for name in trainer.states}


def learn(trainer, steps, folder, saves=()):
    """A loop up to so many steps. It saves after some of them."""
    results = []
    while trainer.steps < steps:
        results.append(trainer.step(batch(trainer.steps)))
        if trainer.steps in saves:
            done = trainer.steps * STEP
            trainer.save(folder, epoch=done // len(IMAGES), sample=done % len(IMAGES), order="in-order")
    return results


def check_bits():
    """A loop of 7 steps over 40 samples: each checkpoint is the command's, byte for byte, and so is the trained model."""
    with partita.Trainer(FOLDER / "digits.partita", seed=SEED, **OPTIONS) as trainer:
        assert [(p.name, p.type, p.shape) for p in trainer.inputs] == [("image", "float32", (None, 1, 8, 8)), ("label", "int64", (None,))], trainer.inputs
        assert (trainer.step_samples, trainer.evaluation_samples, trainer.remark) == (STEP, 4, "")
        before = {name: trainer.state(name) for name in trainer.states}
        assert any(s.role == "parameter" for s in trainer.states.values()) and any(s.role == "optimizer" for s in trainer.states.values())
        assert all(before[s.name].shape == s.shape and before[s.name].dtype == s.dtype for s in trainer.states.values())
        results = learn(trainer, 7, FOLDER / "loop", saves=(3, 7))
        assert [r.step for r in results] == list(range(1, 8)) and all(r.gradient_norm > 0 for r in results), results
        assert results[0].learning_rate == 0.005 and results[1].learning_rate == 0.01, results  # the warm-up
        for step in "step-00000003", "step-00000007":
            assert files(FOLDER / "loop" / step) == files(FOLDER / "command" / step), step
        trainer.export(FOLDER / "loop.onnx")
        assert (FOLDER / "loop.onnx").read_bytes() == (FOLDER / "command.onnx").read_bytes()
        learned = states(trainer)
        assert all(learned[s.name] != before[s.name].tobytes() for s in trainer.states.values() if s.role == "parameter")
    return learned


def check_goes_on(learned):
    """From a checkpoint of the command, the rest of the way has the same bits. What cannot be loaded changes nothing."""
    with partita.Trainer(FOLDER / "digits.partita", seed=SEED, **OPTIONS) as trainer:
        position = trainer.load_checkpoint(FOLDER / "command" / "step-00000003", order="in-order")
        assert position == partita.Position(0, 24) and trainer.steps == 3, position
        learn(trainer, 7, None)
        assert states(trainer) == learned
        fails("set-up", trainer.resume, FOLDER / "command")
        fails("set-up", trainer.resume, FOLDER / "command", order="shuffled")
    with partita.Trainer(FOLDER / "digits.partita", seed=SEED + 1, allow_changes=True, **OPTIONS) as trainer:
        trainer.resume(FOLDER / "command", order="shuffled")
        assert states(trainer) == learned
        assert trainer.remark == f"goes on with changes: order is in-order there and shuffled here, the seed is {SEED} there and {SEED + 1} here", trainer.remark
    with partita.Trainer(FOLDER / "digits.partita", seed=SEED, **OPTIONS) as trainer:
        trainer.load_checkpoint(FOLDER / "command" / "step-00000007", order="in-order")
        damaged = FOLDER / "damaged"
        shutil.copytree(FOLDER / "command", damaged)
        for name in "model.safetensors", "optimizer.safetensors":
            path = damaged / "step-00000007" / name
            content = path.read_bytes()
            for wrong in content[:-1], content[:-1] + bytes([content[-1] ^ 1]), b"":
                path.write_bytes(wrong)
                fails(name, trainer.load_checkpoint, path.parent, order="in-order")
            path.write_bytes(content)
        assert states(trainer) == learned
        path.write_bytes(b"")
        assert trainer.resume(damaged, order="in-order") == partita.Position(1, 8) and trainer.steps == 6
        assert "damaged-step-00000007" in trainer.remark, trainer.remark
        trainer.load_weights(FOLDER / "command" / "step-00000007" / "model.safetensors")
        for name, state in trainer.states.items():
            assert (trainer.state(name).tobytes() == learned[name]) == (state.role == "parameter"), name
        assert trainer.remark == "", trainer.remark
        fails("has no tensor with the name of a parameter", trainer.load_weights, FOLDER / "loop" / "step-00000007" / "optimizer.safetensors")


def check_evaluates():
    with partita.Trainer(FOLDER / "digits.partita", **OPTIONS) as trainer:
        before = states(trainer)
        whole, parts = trainer.evaluate(image=IMAGES, label=LABELS), [trainer.evaluate(image=IMAGES[i : i + 4], label=LABELS[i : i + 4]) for i in range(0, 40, 4)]
        assert whole.labels == 40 and whole.right == sum(p.right for p in parts) and whole.accuracy == whole.right / 40, whole
        assert whole.loss == whole.loss_sum / 40 and np.isclose(whole.loss_sum, sum(p.loss_sum for p in parts)), whole
        with partita.Model(FOLDER / "plain.partita", **OPTIONS) as model:
            scores = model.run(image=IMAGES)["probabilities"].astype(np.float64)
        chosen = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(40), LABELS]
        assert np.isclose(whole.loss, chosen.mean(), rtol=1e-5) and whole.right == (scores.argmax(axis=1) == LABELS).sum(), (whole, chosen.mean())
        assert states(trainer) == before and trainer.steps == 0


def check_wrong():
    """Wrong arrays are refused before anything changes."""
    trainer = partita.Trainer(FOLDER / "digits.partita", **OPTIONS)
    trainer.step(batch(0))
    before = states(trainer)
    for place, value in (0, 10), (STEP - 1, -1), (5, 2**40):
        wrong = {**batch(1), "label": batch(1)["label"].copy()}
        wrong["label"][place] = value
        said = f"{value} at [{place % 4}] of its labels 'label' is out of range: 0 to 9 are allowed"
        fails(f"{said} (sample {place}, micro-batch {place // 4})", trainer.step, wrong, kind=partita.InputError)
        fails(f"cross_entropy 'loss': {said} (micro-batch {place // 4})", trainer.evaluate, wrong, kind=partita.InputError)
        behind = {name: np.concatenate([array, array, wrong[name]]) for name, array in batch(1).items()}
        fails(f"after the first 16 samples: cross_entropy 'loss': {said} (micro-batch {place // 4})", trainer.evaluate, behind, kind=partita.InputError)
    fails("there are 7 samples, and a step takes 8", trainer.step, image=IMAGES[:7], label=LABELS[:7])
    fails("takes a multiple of 4", trainer.evaluate, image=IMAGES[:6], label=LABELS[:6])
    fails("'label' is not given", trainer.step, image=IMAGES[:8])
    fails("give each by its name", trainer.step, IMAGES[:8])
    fails("is given as float64", trainer.step, image=IMAGES[:8].astype(np.float64), label=LABELS[:8])
    fails("have 8 and 4 samples", trainer.step, image=IMAGES[:8], label=LABELS[:4])
    name = next(iter(trainer.states))
    fails("has no state 'nobody'", trainer.state, "nobody")
    fails("is needed", trainer.set_state, name, trainer.state(name).astype(np.float64))
    fails("is needed", trainer.set_state, name, trainer.state(name)[None])
    fails("keep at least 1", trainer.save, FOLDER / "never", keep=0)
    assert states(trainer) == before and trainer.steps == 1 and not (FOLDER / "never").exists()
    # Labels that do not count are none that are wrong.
    ignored = {**batch(1), "label": batch(1)["label"].copy()}
    ignored["label"][:3] = -100
    trainer.step(ignored)
    after = states(trainer)
    trainer.set_state(name, np.asfortranarray(trainer.state(name) + np.float32(1)))
    assert states(trainer)[name] != after[name]
    # What is lost is not gone on with.
    trainer.set_state(name, np.full(trainer.states[name].shape, np.nan, np.float32))
    fails("is not finite", trainer.step, batch(2))
    for call in lambda: trainer.step(batch(3)), lambda: trainer.evaluate(batch(3)), lambda: trainer.save(FOLDER / "never"), lambda: trainer.export(FOLDER / "never.onnx"):
        fails("the parameters are lost, because the", call)
    assert not (FOLDER / "never").exists() and not (FOLDER / "never.onnx").exists()
    trainer.close()
    fails("closed", trainer.step, batch(0))
    fails("closed", lambda: trainer.steps)
    fails("nowhere.partita", partita.Trainer, "nowhere.partita")
    fails("give a number from 0", partita.Trainer, FOLDER / "digits.partita", seed=-1)
    fails("is of a model that is not trained", partita.Trainer, FOLDER / "plain.partita")


def check_ids():
    """An index that is an input is refused, too."""
    with partita.Trainer(FOLDER / "ids.partita", **OPTIONS) as trainer:
        ids, target = np.array([[0, 1], [-5, 4]], np.int64), np.zeros((2, 2, 3), np.float32)
        trainer.step(ids=ids, target=target)
        before = states(trainer)
        for value in 5, -6:
            ids[1, 1] = value
            fails(f"{value} at [1, 1] of its indices 'ids' is out of range: -5 to 4", trainer.step, ids=ids, target=target, kind=partita.InputError)
        assert states(trainer) == before
        ids[1, 1] = 3
        assert trainer.step(ids=ids, target=target).step == 2


def check_threads(learned):
    with partita.Trainer(FOLDER / "digits.partita", **OPTIONS) as trainer:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            steps = sorted(result.step for result in pool.map(lambda _: trainer.step(batch(0)), range(20)))
        assert steps == list(range(1, 21)) and trainer.steps == 20


learned = check_bits()
check_goes_on(learned)
check_evaluates()
check_wrong()
check_ids()
check_threads(learned)
print("a loop in Python learns what partita-run --train does, to the last bit")
