import { expect, it } from "@effect/vitest"
import { convertExecution, type Message, toLog } from "../../src/internal/store/convertExecution.ts"

/** The id of a message that was written some milliseconds after the start of 2026. */
const idAt = (milliseconds: number, sequence = 0) =>
  String((BigInt(Date.UTC(2026, 0, 1) - Date.UTC(2025, 0, 1) + milliseconds) << 22n) + BigInt(sequence))
const timeAt = (milliseconds: number) => Date.UTC(2026, 0, 1) + milliseconds

const message = (at: number, tag: string, payload: object, options: Partial<Message> = {}): Message => ({
  id: idAt(at),
  isTimer: false,
  tag,
  payload: JSON.stringify(payload),
  isProcessed: true,
  deliverAt: undefined,
  replyId: undefined,
  reply: undefined,
  ...options
})

const run = (result: "Suspended" | "Complete" | "none" = "Suspended") =>
  message(0, "run", { taskId: "x" }, {
    isProcessed: result !== "none",
    reply: result === "none" ? undefined : JSON.stringify({ _tag: "Success", value: { _tag: result } })
  })

const ended = (at: number, end: number, name: string, value: string, attempt = 1) =>
  message(at, "activity", { name, attempt, withTransaction: false }, {
    replyId: idAt(end),
    reply: JSON.stringify({ _tag: "Success", value: { _tag: "Complete", exit: { _tag: "Success", value } } })
  })

const done = (at: number, name: string, options: Partial<Message> = {}) =>
  message(at, "deferred", { name, exit: { _tag: "Success", value: null } }, options)

const timer = (at: number, name: string, deliverAt: number, isProcessed = false) =>
  message(at, "run", { name, workflowName: "skein/Task", wakeUp: deliverAt }, { isTimer: true, deliverAt, isProcessed })

const convert = (
  messages: ReadonlyArray<Message>,
  { questions = {}, status = "working" }: { questions?: Record<string, number>; status?: string } = {}
) => {
  const converted = convertExecution({ status, updatedAt: 7, messages, questions: new Map(Object.entries(questions)) })
  return {
    ...converted,
    log: toLog(converted.events).map(({ kind, name, seq }) => `${seq} ${kind} ${name}`)
  }
}

it("orders events by their replies, and other events by their messages", () => {
  const { events } = convertExecution({
    status: "working",
    updatedAt: 7,
    questions: new Map(),
    messages: [
      ended(10, 50, "step/slow", "{\"v\":1}"),
      done(40, "DurableClock/sleep/nap"),
      ended(20, 30, "step/fast", "{\"v\":2}", 3)
    ]
  })
  expect(toLog(events)).toEqual([
    { seq: 1, kind: "step", name: "fast", attempt: 3, value: "{\"v\":2}", startedAt: timeAt(20), at: timeAt(30) },
    { seq: 2, kind: "fired", name: "sleep/nap", attempt: 1, value: null, startedAt: undefined, at: timeAt(40) },
    { seq: 3, kind: "step", name: "slow", attempt: 1, value: "{\"v\":1}", startedAt: timeAt(10), at: timeAt(50) }
  ])
})

it("orders events of the same millisecond", () => {
  const at = (name: string, sequence: number) => ({ ...done(1, `DurableClock/sleep/${name}`), id: idAt(1, sequence) })
  expect(convert([at("c", 3), at("a", 1), at("b", 2)]).log).toEqual([
    "1 fired sleep/a",
    "2 fired sleep/b",
    "3 fired sleep/c"
  ])
})

it("leaves out steps without an end, interrupted and died ones, and events of the engine", () => {
  const reply = (exit: object) => ({ replyId: idAt(2), reply: JSON.stringify(exit) })
  const step = (options: Partial<Message>) => message(1, "activity", { name: "step/x", attempt: 1 }, options)
  const died = { _tag: "Complete", exit: { _tag: "Failure", cause: [{ _tag: "Die", defect: "no" }] } }
  expect(
    convert([
      step({ isProcessed: false }),
      step(reply({ _tag: "Success", value: { _tag: "Suspended" } })),
      step(reply({ _tag: "Success", value: died })),
      step(reply({ _tag: "Failure", cause: [] })),
      { ...step({}), payload: "no JSON", replyId: idAt(2), reply: "no JSON" },
      done(3, "Workflow/InterruptSignal"),
      done(4, "DurableClock/handler/5"),
      timer(3, "handler/5", 5, true)
    ]).log
  ).toEqual([])
})

it("sets timers that have not fired, for sleeps and open questions", () => {
  const messages = [
    timer(1, "sleep/nap", 1000),
    timer(2, "sleep/over", 500, true),
    timer(3, "retry/step/1/900", 900),
    timer(4, "timeout/open", 2000),
    timer(5, "timeout/answered", 3000),
    done(6, "DurableClock/sleep/over")
  ]
  const { events, log } = convert(messages, { questions: { open: 0, answered: 1 } })
  expect(log).toEqual(["1 timer sleep/nap", "2 timer timeout/open", "3 fired sleep/over"])
  expect(events.filter(({ kind }) => kind === "timer").map(({ at }) => at)).toEqual([1000, 2000])
})

it("keeps the place of an answer, and of a timeout before it", () => {
  const messages = [
    ended(1, 2, "step/before", ""),
    done(3, "DurableClock/timeout/q"),
    ended(4, 5, "step/between", ""),
    done(6, "question/q"),
    ended(7, 8, "step/after", "")
  ]
  const logOf = (state: number) => convert(messages, { questions: { q: state } }).log.map((event) => event.slice(2))
  const steps = ["step before", "step between", "step after"]
  expect(logOf(0)).toEqual(steps)
  // The timer fired first, but the question was answered before the handler observed that.
  expect(logOf(1)).toEqual(["step before", "answer q", "step between", "step after"])
  expect(logOf(2)).toEqual(["step before", "timeout q", "step between", "step after"])
  expect(logOf(3)).toEqual(steps)
  const answered = messages.filter(({ payload }) => !payload.includes("timeout"))
  expect(convert(answered, { questions: { q: 1 } }).log).toEqual([
    "1 step before",
    "2 step between",
    "3 answer q",
    "4 step after"
  ])
})

it("keeps the first of two events with the same name", () => {
  const { log } = convert([ended(1, 2, "sleep/nap", ""), done(3, "DurableClock/sleep/nap")])
  expect(log).toEqual(["1 fired sleep/nap"])
})

it("stores time 0 for ids that have none", () => {
  const { events } = convert([{ ...done(0, "DurableClock/sleep/nap"), id: String(-(2n ** 63n)) }])
  expect(events.map(({ at }) => at)).toEqual([0])
})

it("queues tasks as waiting only if their execution is suspended and expects an event", () => {
  const never = Number.MAX_SAFE_INTEGER
  const ready = { state: 0, wakeAt: 7 }
  const cases: ReadonlyArray<readonly [messages: ReadonlyArray<Message>, status: string, expected: object]> = [
    [[], "working", ready],
    [[run("none"), timer(1, "sleep/nap", 1000)], "working", ready],
    [[run(), timer(1, "sleep/nap", 1000)], "working", { state: 1, wakeAt: 1000 }],
    [[run(), timer(1, "sleep/a", 1000), timer(1, "sleep/b", 900)], "input_required", { state: 1, wakeAt: 900 }],
    [[run(), timer(1, "sleep/nap", 1000, true)], "working", ready],
    [[run()], "working", ready],
    [[run()], "input_required", { state: 1, wakeAt: never }],
    [[run(), done(1, "question/q", { isProcessed: false })], "input_required", ready],
    [[run(), timer(1, "sleep/nap", 1000)], "cancelled", ready],
    [[run("Complete"), timer(1, "sleep/nap", 1000)], "working", ready]
  ]
  for (const [messages, status, expected] of cases) expect(convert(messages, { status })).toMatchObject(expected)
})
