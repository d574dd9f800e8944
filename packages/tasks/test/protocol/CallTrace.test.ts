/** The trace context of a call, which its task stores. */
import { expect, it } from "@effect/vitest"
import * as Telemetry from "@skein/server/Telemetry"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import { connect, headers } from "../../../server/test/middleware/support.ts"
import * as kit from "./kit.ts"
import * as tools from "./tools.ts"

const inMeta = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
const inHeader = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-00"

/** The stored `traceparent` of the task of one call. */
const storedOf = (
  call: { readonly _meta?: object; readonly headers?: { readonly [name: string]: string } },
  definitions: Parameters<typeof kit.server>[0] = []
) =>
  Effect.gen(function*() {
    const served = yield* kit.server([...definitions, tools.gated().definition], {}, MemoryTasks.layer())
    const client = yield* connect(served.server, "2026-07-28", headers(call.headers ?? {}))
    const _meta = { "io.modelcontextprotocol/clientCapabilities": kit.tasks, ...call._meta }
    const { taskId } = yield* client.result("tools/call", { name: "bake", _meta })
    const task = yield* Context.get(served.context, TaskEngine).get(taskId)
    return task?.caller.traceparent
  }).pipe(Effect.scoped)

it.live("2026-07-28 · a task stores the traceparent of its call: of `_meta`, or else of the HTTP request", () =>
  Effect.gen(function*() {
    expect(yield* storedOf({ _meta: { traceparent: inMeta }, headers: { traceparent: inHeader } })).toBe(inMeta)
    expect(yield* storedOf({ headers: { traceparent: inHeader } })).toBe(inHeader)
    expect(yield* storedOf({ _meta: { traceparent: "nonsense" } })).toBeUndefined()
    expect(yield* storedOf({})).toBeUndefined()
  }))

it.live("with telemetry it stores the span of the call, and never the span in which the server was built", () =>
  Effect.gen(function*() {
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const traced = yield* storedOf({ _meta: { traceparent: inMeta } }, [Telemetry.layer()]).pipe(
      Effect.withSpan("main"),
      Effect.provide(Layer.succeed(Tracer.Tracer, tracer))
    )
    const { spanId, traceId } = spans.find(({ name }) => name === "tools/call bake")!
    expect(traced).toBe(`00-${traceId}-${spanId}-01`)
    expect(traced).toContain("0af7651916cd43dd8448eb211c80319c")
    const untraced = storedOf({}).pipe(Effect.withSpan("main"), Effect.provide(Layer.succeed(Tracer.Tracer, tracer)))
    expect(yield* untraced).toBeUndefined()
  }))
