/**
 * The sources of all workers of a server (the option `workers` of `NodeHttp.runMain`) in one tree. A viewer is connected
 * to one worker, which asks the others. The rows of worker 2 have ids that begin with `w2/`, so that interrupts and
 * actions reach it.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Service as Workers } from "@skein/runtime/Workers"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ActionResult, MoreQuery, Node, Page, Query, Source } from "../ConsoleSource.ts"
import { summaryOf } from "./serverSource.ts"
import { reasonOf } from "./tree.ts"

// How long a worker may take to answer, in milliseconds.
const answerTimeout = 2_000

/** A worker does not answer, or its source has failed. */
class WorkerFailed extends PrintableError.tagged("WorkerFailed") {}

/** A question to a worker about one of its sources. */
type Question =
  & { readonly source: string }
  & (
    | { readonly _tag: "Read"; readonly query: Query }
    | { readonly _tag: "More"; readonly query: MoreQuery }
    | { readonly _tag: "Interrupt"; readonly id: string; readonly viewer?: string | undefined }
    | { readonly _tag: "Act"; readonly id: string; readonly action: string; readonly viewer?: string | undefined }
  )

/** The result of a source, or the reason why it failed. */
type Answered = { readonly value?: unknown } | { readonly failure: string }

const isFailure = (answered: Answered): answered is { readonly failure: string } => "failure" in answered

const run = (source: Source, question: Question): Effect.Effect<unknown, unknown> => {
  switch (question._tag) {
    case "Read":
      return source.read(question.query)
    case "More":
      return source.more?.(question.query) ?? Effect.succeed({ nodes: [] })
    case "Interrupt":
      return source.interrupt?.(question.id, question.viewer) ?? Effect.succeed(false)
    case "Act":
      return source.act?.(question.id, question.action, question.viewer) ?? Effect.undefined
  }
}

const prefixOf = (worker: number): string => `w${worker}/`

/** The worker and the id there of a row, if there is such a worker. */
const parse = (workers: Workers, row: string): { readonly worker: number; readonly id: string } | undefined => {
  const [, number, id] = /^w(\d{1,15})\/(.*)$/s.exec(row) ?? []
  const worker = Number(number)
  return id !== undefined && (worker === workers.number || workers.serving().includes(worker))
    ? { worker, id }
    : undefined
}

const prefixed = (worker: number, node: Node): Node => ({
  ...node,
  id: prefixOf(worker) + node.id,
  ...(node.parent === undefined ? undefined : { parent: prefixOf(worker) + node.parent })
})

/** The page of one worker; undefined if it has not answered. */
interface WorkerPage {
  readonly worker: number
  readonly answered: Answered | undefined
}

/** The rows of a source of its own. */
const joinPages = (name: string, pages: ReadonlyArray<WorkerPage>): Page => ({
  nodes: pages.flatMap(({ answered, worker }): ReadonlyArray<Node> => {
    // The row of the worker reports that.
    if (answered === undefined) return []
    if (isFailure(answered)) {
      const label = `${name} of worker ${worker} cannot be shown`
      return [{ id: `${prefixOf(worker)}problem`, kind: "problem", label, state: "failed", waitsFor: answered.failure }]
    }
    return (answered.value as Page).nodes.map((node) => {
      const row = prefixed(worker, node)
      return row.parent === undefined ? { ...row, details: { ...row.details, worker } } : row
    })
  })
})

/** The rows of the servers: a row for all, one below it for each worker, and its rows below that. */
const joinServers = (pages: ReadonlyArray<WorkerPage>): Page => {
  const sums: Record<string, number> = {}
  let label: string | undefined
  const nodes = pages.flatMap(({ answered, worker }): ReadonlyArray<Node> => {
    const own = { parent: "server", kind: "worker", label: `Worker ${worker}` }
    if (answered === undefined || isFailure(answered)) {
      const waitsFor = answered?.failure ?? `an answer (none within ${answerTimeout} ms)`
      return [{ ...own, id: `${prefixOf(worker)}server`, state: "lost", waitsFor }]
    }
    const { nodes } = answered.value as Page
    return nodes.map((node) => {
      const row = prefixed(worker, node)
      if (node.parent !== undefined) return row
      label ??= node.label
      for (const [name, value] of Object.entries(node.details ?? {})) {
        if (typeof value === "number") sums[name] = (sums[name] ?? 0) + value
      }
      return { ...row, ...own }
    })
  })
  const { "requests answered": requests = 0, "requests failed": failures = 0, "requests per second": rate } = sums
  const server: Node = {
    id: "server",
    kind: "server",
    label: label ?? "server",
    state: "running",
    summary: summaryOf({ requests, failures }, rate),
    details: { ...sums, workers: pages.length }
  }
  return { nodes: [server, ...nodes] }
}

/**
 * Answers the other workers about the sources of this one, and returns the function that joins a source with those of the
 * others. `topic` names the console.
 */
export const make = Effect.fnUntraced(function*(
  workers: Workers,
  topic: string,
  own: () => ReadonlyArray<Source>
): Effect.fn.Return<(source: Source) => Source, never, Scope.Scope> {
  yield* workers.answer(topic, (content) => {
    const question = content as Question
    const source = own().find(({ name }) => name === question.source)
    if (source === undefined) return Effect.succeed<Answered>({ failure: "this worker has no such source" })
    return Effect.catchCause(
      Effect.map(run(source, question), (value): Answered => ({ value })),
      (cause) =>
        Effect.as(
          Effect.logDebug(`console: failed to read the source ${source.name}`, cause),
          { failure: reasonOf(cause) }
        )
    )
  })

  const ask = (worker: number, question: Question): Effect.Effect<unknown, WorkerFailed> =>
    Effect.flatMap(workers.ask(worker, topic, question, answerTimeout), (answer) => {
      const answered = answer as Answered | undefined
      if (answered === undefined) return Effect.fail(new WorkerFailed({ message: `worker ${worker} does not answer` }))
      return isFailure(answered)
        ? Effect.fail(new WorkerFailed({ message: answered.failure }))
        : Effect.succeed(answered.value)
    })

  return (source) => {
    const { name } = source
    if (source.isShared === true) return source
    return {
      name,
      read: (query) => {
        const maxRows = Math.floor((query.maxRows - 1) / Math.max(1, workers.serving().length))
        const question: Question = { _tag: "Read", source: name, query: { ...query, maxRows } }
        return Effect.map(workers.askAll(topic, question, answerTimeout), (answers) => {
          const pages = answers.map(({ answer, worker }) => ({ worker, answered: answer as Answered | undefined }))
          return name === "server" ? joinServers(pages) : joinPages(name, pages)
        })
      },
      more: (query) => {
        const found = parse(workers, query.parent)
        if (found === undefined) return Effect.succeed({ nodes: [] })
        const { id: parent, worker } = found
        return Effect.map(ask(worker, { _tag: "More", source: name, query: { ...query, parent } }), (value) => {
          const page = value as Page
          return { ...page, nodes: page.nodes.map((node) => prefixed(worker, node)) }
        })
      },
      interrupt: (row, viewer) => {
        const found = parse(workers, row)
        if (found === undefined) return Effect.succeed(false)
        const { id, worker } = found
        return Effect.map(ask(worker, { _tag: "Interrupt", source: name, id, viewer }), (isFound) => isFound === true)
      },
      act: (row, action, viewer) => {
        const found = parse(workers, row)
        if (found === undefined) return Effect.undefined
        const { id, worker } = found
        return Effect.map(
          ask(worker, { _tag: "Act", source: name, id, action, viewer }),
          (result) => result as ActionResult | undefined
        )
      }
    }
  }
})
