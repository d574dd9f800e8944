import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { Question, State } from "../../src/TaskState.ts"
import { isFinal } from "../../src/TaskState.ts"
import { completed, counters, each, file, fresh, memory, type Opened, pg, question, task } from "./kit.ts"

const Which = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
const operation = <const Tag extends string>(_tag: Tag) =>
  Schema.Struct({ _tag: Schema.Literal(_tag), which: Which, key: Which })

/** Any operation on one of four tasks, with one of four keys. */
const Operation = Schema.Union([
  operation("insert"),
  operation("say"),
  operation("progress"),
  operation("ask"),
  operation("answer"),
  operation("withdraw"),
  operation("complete"),
  operation("fail"),
  operation("cancel"),
  operation("settle"),
  operation("remove"),
  operation("wait"),
  operation("undone")
])
type Operation = typeof Operation.Type

const firsts = [0, 1, 2].map((which): Operation => ({ _tag: "insert", which, key: which }))

/** The expected state of a task, computed in the simplest way. */
interface Model {
  readonly id: string
  state: State
  lastKey: number
  readonly questions: Map<
    string,
    { readonly question: Question; state: "open" | "answered" | "withdrawn"; answer?: object }
  >
}

const ends = {
  complete: completed({ ok: true }),
  fail: { status: "failed", outcome: { _tag: "Error", error: { code: -32603, message: "no" } } },
  cancel: { status: "cancelled" }
} as const

const limits = { all: { retained: 9 }, client: { live: 3 }, tool: { live: 4 } }

const run = (opened: Opened, operations: ReadonlyArray<Operation>) =>
  Effect.gen(function*() {
    const { sql, store } = opened
    const tasks: Array<Model | undefined> = []
    const all: Array<Model> = []
    for (const [index, { _tag, key, which }] of operations.entries()) {
      yield* TestClock.adjust(1)
      if (_tag === "insert") {
        const models = all.filter(({ id }) => tasks.some((task) => task?.id === id))
        const owner = which % 2 === 0 ? "ada" : null
        const tool = key % 2 === 0 ? "x" : "y"
        const live = (own: (state: State) => boolean) =>
          models.filter(({ state }) => !isFinal(state) && own(state)).length
        const room = models.length < 9 && live((state) => state.owner === owner) < 3 &&
          live((state) => state.tool === tool) < 4
        const inserted = yield* Effect.result(
          store.insert(task({ owner, tool, limits, ttlMs: null }))
        )
        expect(inserted._tag).toBe(room ? "Success" : "Failure")
        if (inserted._tag === "Success") {
          const model: Model = { id: inserted.success.id, state: inserted.success, lastKey: 0, questions: new Map() }
          if (tasks[which] === undefined) tasks[which] = model
          else tasks.push(model)
          all.push(model)
        }
        continue
      }
      const model = tasks[which]
      if (model === undefined) continue
      const { id, questions, state } = model
      const before = state
      const over = isFinal(state)
      const known = questions.get(`k${key}`)
      let changes = false
      switch (_tag) {
        case "say":
          changes = !over && key > model.lastKey
          yield* store.setStatusMessage(id, `message ${index}`, key)
          if (changes) model.lastKey = key
          break
        case "progress":
          changes = !over && key > (state.progress?.progress ?? -1)
          yield* store.setProgress(id, { progress: key })
          break
        case "ask":
          changes = !over && known === undefined
          expect(yield* store.ask(id, question(`k${key}`))).toEqual(known?.answer)
          if (changes) questions.set(`k${key}`, { question: question(`k${key}`), state: "open" })
          break
        case "answer":
          changes = !over && known?.state === "open"
          expect(yield* store.answer(id, `k${key}`, { index })).toBe(changes)
          if (changes) questions.set(`k${key}`, { ...known!, state: "answered", answer: { index } })
          break
        case "withdraw":
          changes = !over && known?.state === "open"
          yield* store.withdraw(id, `k${key}`)
          if (changes) questions.set(`k${key}`, { ...known!, state: "withdrawn" })
          break
        case "complete":
        case "fail":
        case "cancel":
          changes = !over
          expect(yield* store.finish(id, ends[_tag])).toBe(changes)
          break
        case "settle":
          yield* store.settle(id)
          break
        case "undone":
          yield* Effect.exit(sql.withTransaction(Effect.andThen(
            Effect.all([
              store.setStatusMessage(id, "x"),
              store.ask(id, question(`k${key}`)),
              store.finish(id, ends.cancel)
            ]),
            Effect.fail("no")
          )))
          break
        case "remove":
          yield* store.remove([id])
          tasks[which] = undefined
          expect(yield* store.get(id)).toBeUndefined()
          continue
      }
      const after = (yield* store.get(id))!
      if (changes) expect(after.version).toBe(before.version + 1)
      else expect(after).toEqual(before)
      const open = [...questions.values()].filter(({ state }) => state === "open").map(({ question }) => question)
      if (!isFinal(after)) {
        expect(after.status).toBe(open.length > 0 ? "input_required" : "working")
        expect(after.questions).toEqual(open)
      } else {
        expect(after.questions).toEqual([])
        expect(after.outcome === undefined).toBe(after.status === "cancelled")
      }
      model.state = after
    }
    const { counted, kept } = yield* counters(opened)
    expect(kept).toEqual(counted)
    expect(kept[0] ?? "0  0 0").toContain(` ${tasks.filter((task) => task !== undefined).length}`)
  })

each([memory, file, pg], (backend) => {
  it.effect.prop(
    "any operations: a final status stays, versions grow by one, one answer per question, correct counters",
    [Schema.Array(Operation).check(Schema.isMinLength(1), Schema.isMaxLength(60))],
    ([operations]) =>
      Effect.scoped(Effect.flatMap(fresh(backend), (opened) => run(opened, [...firsts, ...operations]))),
    { timeout: 60_000, arbitrary: { runs: backend === memory ? 100 : 10, size: 60, seed: "skein" } }
  )
})
