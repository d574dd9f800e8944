/**
 * The output of tasks as resources of a server, one per task: `task-output://<id>`, with `?from=<offset>` for a later part. A
 * read returns a page as JSON, and a subscriber is notified when the output has grown, and when the task has ended.
 */
import * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Content from "@skein/server/Content"
import * as Logging from "@skein/server/Logging"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { State } from "../../TaskState.ts"
import { type TaskService, withMcpErrors } from "./taskService.ts"

const uriTemplate = "task-output://{taskId}{?from}"
const pattern = /^task-output:\/\/([\w-]{1,128})(?:\?from=(\d{1,9}))?$/

/** An offset behind all items. */
const behindAll = 999_999_999

/** The items that one notification is about, at most. */
const maxGathered = 1000

const definition = {
  uriTemplate,
  name: "task-output",
  title: "Output of a task",
  description: "The items that a long-running task has emitted so far, from an offset on, as JSON: " +
    "{ items, next, count, hasEnded }. Read it again from `next` until `hasEnded` is true and `next` is `count`.",
  mimeType: "application/json"
}

/** Registers the resources until the scope closes. `interval`: milliseconds between two notifications. */
export const registerOutput = (
  tasks: TaskService["Service"],
  interval: number
): Effect.Effect<void, never, Scope.Scope> => {
  const { catalog, engine } = tasks

  /** The task that a caller may see, or the error of a resource that does not exist. */
  const find = (uri: string, id: string, caller: Caller): Effect.Effect<State, McpError.McpError> =>
    Effect.catchIf(
      tasks.find(id, caller),
      ({ reason }) => reason === "InvalidParams",
      () => Effect.fail(McpError.resourceNotFound(uri))
    )

  const read = (uri: string, id: string, from: number): Catalog.Reader => ({ caller }) =>
    Effect.flatMap(
      Effect.andThen(find(uri, id, caller), withMcpErrors(engine.readOutput(id, { from }))),
      (page) => {
        if (page === undefined) return Effect.fail(McpError.resourceNotFound(uri))
        const text = JSON.stringify({ ...page, items: page.items.map(({ value }) => value) })
        return Effect.succeed({
          contents: [Content.resourceContents(uri, text, definition.mimeType)],
          ttlMs: 0,
          cacheScope: "private" as const
        })
      }
    )

  /** Notifies the subscribers of a URI of the items from an offset on. */
  const notify = (uri: string, id: string, from: number) => {
    const updated = Effect.provideService(Catalog.updated(uri), Catalog.Catalog, catalog)
    const grown = engine.followOutput(id, { from }).pipe(
      Stream.groupedWithin(maxGathered, interval),
      Stream.runForEach(() => updated)
    )
    return Effect.catchCause(
      Effect.andThen(grown, updated),
      (cause) => Logging.withheld(Effect.logWarning("stopped the notifications about the output of a task", cause))
    )
  }

  return Effect.orDie(catalog.templates.add(uriTemplate, {
    definition,
    names: ["taskId", "from"],
    match: (uri) => {
      const [, id, from = "0"] = pattern.exec(uri) ?? []
      return id === undefined ? undefined : read(uri, id, Number(from))
    },
    admits: (uri, caller) => {
      const [, id = ""] = pattern.exec(uri) ?? []
      return Effect.match(find(uri, id, caller), { onFailure: () => false, onSuccess: () => true })
    },
    watch: (uri) => {
      const [, id = ""] = pattern.exec(uri) ?? []
      // A subscriber that reads after the confirmation misses nothing.
      return Effect.flatMap(
        withMcpErrors(engine.readOutput(id, { from: behindAll })),
        (page) => Effect.asVoid(Effect.forkScoped(notify(uri, id, page?.count ?? 0)))
      )
    }
  }))
}
