/**
 * The form of exported tasks: reads one, and replaces its values by their shapes.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { TaskStatus } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ExportedEvent, ExportedQuestion, ExportedTask } from "../../TaskExport.ts"
import { InvalidOption, TaskError } from "../../TaskError.ts"
import type { Outcome } from "../../TaskState.ts"
import { truncateLine } from "./text.ts"

const json = Schema.Record(Schema.String, Schema.Unknown)
const kinds = [
  ...["step", "once", "timer", "fired", "answer", "timeout", "received", "start", "join", "emit"] as const,
  ...["undo", "giveUp", "continued", "stopped", "settled", "patched", "unpatched", "section"] as const
]

const Exported = Schema.Struct({
  format: Schema.Literal("skein-task"),
  version: Schema.Literal(1),
  redacted: Schema.Boolean,
  exportedAt: Schema.Number,
  task: Schema.Struct({
    id: Schema.String,
    tool: Schema.String,
    pool: Schema.String,
    owner: Schema.NullOr(Schema.String),
    status: TaskStatus,
    statusMessage: Schema.optional(Schema.String),
    isError: Schema.Boolean,
    createdAt: Schema.Number,
    updatedAt: Schema.Number,
    ttlMs: Schema.NullOr(Schema.Number),
    pollIntervalMs: Schema.Number,
    caller: Schema.Struct({
      revision: Schema.Literals(Revision.all),
      capabilities: json,
      info: Schema.optional(json),
      principal: Schema.optional(Schema.Struct({ id: Schema.String })),
      traceparent: Schema.optional(Schema.String)
    }),
    labels: Schema.Record(Schema.String, Schema.String),
    args: json,
    outcome: Schema.optional(Schema.Union([
      Schema.Struct({ _tag: Schema.Literal("Result"), result: json }),
      Schema.Struct({
        _tag: Schema.Literal("Error"),
        error: Schema.Struct({ code: Schema.Int, message: Schema.String, data: Schema.optional(Schema.Unknown) })
      })
    ]))
  }),
  questions: Schema.Array(Schema.Struct({
    key: Schema.String,
    method: Schema.String,
    state: Schema.Literals(["open", "answered", "withdrawn", "lost"]),
    params: Schema.optional(json),
    answer: Schema.optional(json)
  })),
  log: Schema.Array(Schema.Struct({
    seq: Schema.Int,
    kind: Schema.Literals(kinds),
    name: Schema.String,
    attempt: Schema.Int,
    at: Schema.Number,
    startedAt: Schema.optional(Schema.Number),
    value: Schema.optional(Schema.String),
    beside: Schema.optional(Schema.Array(Schema.String))
  }))
})

const decode = Schema.decodeUnknownResult(Exported)

/** Reads an exported task. Fails with `InvalidOption` for another value, and for another version. */
export const readExported = (value: unknown): Effect.Effect<ExportedTask, TaskError> =>
  Effect.suspend(() => {
    const read = decode(value)
    if (Result.isSuccess(read)) return Effect.succeed(read.success as ExportedTask)
    const message = `the value is not an exported task of version 1: ${truncateLine(String(read.failure))}`
    return Effect.fail(new TaskError({ reason: new InvalidOption({ message }) }))
  })

/** The members whose texts tell cases apart, for instance in a tagged union. Without them most values cannot be decoded. */
const discriminators: ReadonlySet<string> = new Set(["_tag", "type", "action", "failure"])

/** The shape of a value: its members and items, and the lengths of its texts. */
const shapeOf = (value: unknown, name = ""): unknown => {
  if (typeof value === "string") return discriminators.has(name) ? value : `<${value.length} characters>`
  if (typeof value === "number" || typeof value === "bigint") return 0
  if (typeof value === "boolean") return false
  if (Array.isArray(value)) return value.map((item) => shapeOf(item))
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member, name)]))
    : value
}

const shapeOfObject = <A extends object | undefined>(value: A): A => shapeOf(value) as A

const shapeOfOutcome = (outcome: Outcome): Outcome =>
  outcome._tag === "Result"
    ? { ...outcome, result: { ...shapeOfObject(outcome.result), ...pick(outcome.result, "isError") } }
    : { ...outcome, error: { ...shapeOfObject(outcome.error), code: outcome.error.code } }

const pick = (value: JsonObject, name: string): JsonObject => name in value ? { [name]: value[name] } : {}

/** The shape of a record. The time of a failure stays: the pauses between attempts depend on it. A sleep has an empty record. */
const shapeOfRecord = ({ kind, value }: ExportedEvent): string | undefined => {
  if (value === undefined || value === "") return value
  const record: unknown = JSON.parse(value)
  return JSON.stringify(
    kind === "step" && isObject(record) ? { ...shapeOfObject(record), ...pick(record, "at") } : shapeOf(record)
  )
}

/** Replaces the values of an exported task by their shapes. */
export const redact = (exported: ExportedTask): ExportedTask => {
  const { log, questions, task } = exported
  const { capabilities, info, revision } = task.caller
  return {
    ...exported,
    redacted: true,
    task: {
      ...task,
      owner: null,
      caller: { revision, capabilities, info, principal: undefined },
      labels: shapeOfObject(task.labels) as ExportedTask["task"]["labels"],
      args: shapeOfObject(task.args),
      statusMessage: shapeOf(task.statusMessage) as string | undefined,
      outcome: task.outcome && shapeOfOutcome(task.outcome)
    },
    questions: questions.map((question): ExportedQuestion => ({
      ...question,
      params: shapeOfObject(question.params),
      answer: shapeOfObject(question.answer)
    })),
    log: log.map((event) => ({ ...event, value: shapeOfRecord(event) }))
  }
}
