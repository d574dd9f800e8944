/**
 * The tree of a console at one moment, and the differences between two of them.
 */
import { printable } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Node, Query, Source } from "../ConsoleSource.ts"
import type { Fixed } from "./bounds.ts"
import type { Row, Rows } from "./messages.ts"

/** The bounds of a tree. */
export interface Bounds extends Pick<Fixed, "maxRows" | "maxChildren" | "maxPayloadChars" | "readTimeout"> {
  readonly showPayloads: boolean
}

/** The rows at one moment, parents before children. It does not change later. */
export interface Tree {
  /** Milliseconds of Unix time. */
  readonly at: number
  readonly rows: ReadonlyMap<string, Row>
}

// The most characters of a text in a row.
const maxLabel = 200

// The most details of a row.
const maxDetails = 30

// The most actions of a row, and the most characters of their texts.
const maxActions = 10
const maxActionName = 100
const maxActionLabel = 60
const maxActionConfirm = 600

/** Escapes and shortens a text that viewers see. */
export const clip = (text: string, maxChars = maxLabel): string => printable(text, maxChars)

/** The actions of a node. Their names are not changed, since viewers send them back. */
const actionsOf = (actions: NonNullable<Node["actions"]>): NonNullable<Row["actions"]> =>
  actions.filter(({ name }) => name !== "" && name.length <= maxActionName).slice(0, maxActions).map((
    { confirm, label, name }
  ) => ({
    name,
    label: clip(label, maxActionLabel),
    ...(confirm === undefined ? undefined : { confirm: clip(confirm, maxActionConfirm) })
  }))

const detailsOf = (details: NonNullable<Node["details"]>, maxChars: number): NonNullable<Row["details"]> =>
  Object.fromEntries(
    Object.entries(details).slice(0, maxDetails).map((
      [name, value]
    ) => [clip(name), typeof value === "string" ? clip(value, maxChars) : value])
  )

/** Leaves out the members without a value. */
export const defined = <A extends object>(members: A): { [K in keyof A]: Exclude<A[K], undefined> } => {
  const found: Partial<A> = {}
  for (const name in members) if (members[name] !== undefined) found[name] = members[name]
  return found as never
}

/** A node of a source, as viewers receive it: its texts are escaped and shortened. */
export const rowOf = (source: string, node: Node, bounds: Pick<Bounds, "maxPayloadChars">): Row => {
  const { actions, canInterrupt, details, more, parent, principal, progress, since, summary, traceId, waitsFor } = node
  return defined({
    id: `${source}:${node.id}`,
    parent: parent === undefined ? undefined : `${source}:${parent}`,
    kind: clip(node.kind),
    label: clip(node.label),
    state: clip(node.state),
    waitsFor: waitsFor && clip(waitsFor),
    summary: summary && clip(summary),
    since: since && Math.round(since),
    progress: progress && defined({ ...progress, message: progress.message && clip(progress.message) }),
    principal: principal && clip(principal),
    traceId: traceId && clip(traceId),
    details: details && detailsOf(details, Math.max(maxLabel, bounds.maxPayloadChars)),
    canInterrupt: canInterrupt || undefined,
    actions: actions === undefined || actions.length === 0 ? undefined : actionsOf(actions),
    more: more && defined({ total: more.total, after: more.after || undefined })
  })
}

const problem = (source: string, reason: string): Node => ({
  id: "problem",
  kind: "problem",
  label: `${source} cannot be shown`,
  state: "failed",
  waitsFor: reason
})

/** Asks one source. Its failure becomes a node, and does not affect the others. */
const ask = (source: Source, query: Query, readTimeout: number): Effect.Effect<ReadonlyArray<Node>> =>
  source.read(query).pipe(
    Effect.map(({ nodes }) => nodes),
    Effect.timeoutOrElse({
      duration: readTimeout,
      orElse: () => Effect.succeed([problem(source.name, `it did not answer within ${readTimeout} ms`)])
    }),
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.logDebug(`console: failed to read the source ${source.name}`, cause),
        [problem(source.name, reasonOf(cause))]
      )
    )
  )

/** The reason of a failure, for viewers. */
export const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = cause.reasons.find(Cause.isFailReason)?.error
  return error instanceof Error ? error.message : "the source failed; the log has the cause at the level Debug"
}

/** Reads all sources, at the same time. */
export const readTree = (sources: ReadonlyArray<Source>, bounds: Bounds): Effect.Effect<Tree> => {
  const { maxChildren: limit, readTimeout, showPayloads } = bounds
  // A source gets an equal part of the rows.
  const maxRows = Math.floor(bounds.maxRows / sources.length)
  const asked = sources.map((source) => ask(source, { limit, maxRows, showPayloads }, readTimeout))
  return Effect.clockWith((clock) =>
    Effect.map(
      Effect.all(asked, { concurrency: "unbounded" }),
      (all) => ({ at: clock.currentTimeMillisUnsafe(), rows: rowsOf(sources, all, maxRows, bounds) })
    )
  )
}

/** The rows of all sources. A row whose parent is missing is left out, so that each viewer can build the tree. */
const rowsOf = (
  sources: ReadonlyArray<Source>,
  all: ReadonlyArray<ReadonlyArray<Node>>,
  share: number,
  bounds: Bounds
): ReadonlyMap<string, Row> => {
  const rows = new Map<string, Row>()
  for (const [index, nodes] of all.entries()) {
    for (const node of nodes.slice(0, share)) {
      const row = rowOf(sources[index]!.name, node, bounds)
      if (row.parent === undefined || rows.has(row.parent)) rows.set(row.id, row)
    }
  }
  return rows
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Whether two rows, or two members of them, are equal. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (one === other) return true
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => isSame(one[name], other[name]))
}

/**
 * The events that bring a viewer from one tree to another, or from nothing, each with at most `maxRowsPerMessage` rows.
 * They are made one by one, so that a slow viewer does not make them wait in memory.
 */
export function* changes(from: Tree | undefined, to: Tree, maxRowsPerMessage: number): Generator<Rows> {
  const isReset = from === undefined
  let set: Array<Row> = []
  let remove: Array<string> = []
  let isFirst = true
  const take = (continues: boolean): Rows => {
    const event: Rows = {
      at: to.at,
      ...(isReset && isFirst ? { reset: true } : undefined),
      ...(set.length > 0 ? { set } : undefined),
      ...(remove.length > 0 ? { remove } : undefined),
      ...(continues ? { continues } : undefined)
    }
    isFirst = false
    set = []
    remove = []
    return event
  }
  if (from !== undefined) {
    for (const id of from.rows.keys()) {
      if (to.rows.has(id)) continue
      remove.push(id)
      if (remove.length >= maxRowsPerMessage) yield take(true)
    }
  }
  for (const [id, row] of to.rows) {
    if (isSame(from?.rows.get(id), row)) continue
    if (set.length + remove.length >= maxRowsPerMessage) yield take(true)
    set.push(row)
  }
  yield take(false)
}
