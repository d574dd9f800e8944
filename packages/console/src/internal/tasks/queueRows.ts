/**
 * The rows of the queue, one for each tool, and those of the workers.
 */
import type { Statistics, ToolState, WorkerState } from "@skein/tasks/TaskAdmin"
import * as Duration from "effect/Duration"
import { cancelAll, rerunAll, wakeAll } from "./bulkActions.ts"
import type { Action, Node } from "../../ConsoleSource.ts"

/** The ids of the groups. */
export const groups = { queue: "queue", workers: "workers" } as const

/** The names of the actions of a tool. */
export const actionNames = { pause: "pause", resume: "resume" } as const

interface Counts {
  ready: number
  waiting: number
  running: number
  /** The age of the oldest ready task. */
  oldestMs: number | undefined
}

/** A tool with its numbers, in all pools and by pool. */
interface ToolQueue {
  readonly tool: string
  readonly all: Counts
  readonly pools: Map<string, Counts>
  readonly settings: ToolState | undefined
}

const noCounts = (): Counts => ({ ready: 0, waiting: 0, running: 0, oldestMs: undefined })

const add = (counts: Counts, { count, oldestMs, state }: Statistics["queue"][number]): void => {
  counts[state] += count
  if (oldestMs !== undefined) counts.oldestMs = Math.max(counts.oldestMs ?? 0, oldestMs)
}

/** The id of the row of a tool. */
export const toolNodeId = (tool: string): string => `${groups.queue}/${JSON.stringify(tool)}`

/**
 * The tools by name: those with a task in the store, paused ones, and those with limits. A tool without tasks in the
 * queue has a row too, so that it can be paused before it is called, and so that rows do not come and go.
 */
const toolQueues = ({ queue, tasks }: Statistics, tools: ReadonlyArray<ToolState>): ReadonlyArray<ToolQueue> => {
  const settings = new Map(tools.map((one) => [one.tool, one]))
  const found = new Map<string, ToolQueue>()
  for (const { tool } of [...tasks, ...queue, ...tools]) {
    if (!found.has(tool)) found.set(tool, { tool, all: noCounts(), pools: new Map(), settings: settings.get(tool) })
  }
  for (const entry of queue) {
    const { all, pools } = found.get(entry.tool)!
    const pool = pools.get(entry.pool) ?? noCounts()
    pools.set(entry.pool, pool)
    for (const counts of [all, pool]) add(counts, entry)
  }
  return [...found.values()].sort((one, other) => one.tool < other.tool ? -1 : 1)
}

const stateOf = ({ ready, running, waiting }: Counts): string =>
  running > 0 ? "running" : ready > 0 ? "queued" : waiting > 0 ? "waiting" : "idle"

const summaryOf = (counts: Counts): string | undefined => {
  const parts = (["ready", "waiting", "running"] as const).flatMap((name) =>
    counts[name] === 0 ? [] : [`${counts[name].toLocaleString("en")} ${name}`]
  )
  return parts.length === 0 ? undefined : parts.join(", ")
}

const countDetails = ({ ready, running, waiting }: Counts): NonNullable<Node["details"]> => ({
  ready,
  waiting,
  running
})

/** A row of the queue is as old as its oldest ready task. */
const sinceOf = ({ oldestMs }: Counts, at: number): { readonly since?: number } =>
  oldestMs === undefined ? {} : { since: at - oldestMs }

const pause: Action = {
  name: actionNames.pause,
  label: "Pause",
  confirm:
    "Calls of this tool are still accepted, but their tasks wait until it is resumed, in all processes. A task " +
    "that runs goes on until it waits next. Cancelled tasks compensate at once."
}

const resume: Action = { name: actionNames.resume, label: "Resume" }

const rateOf = ({ limit, periodMs }: NonNullable<ToolState["rate"]>): string =>
  `${limit.toLocaleString("en")} per ${Duration.format(Duration.millis(periodMs))}`

const limitsOf = ({ concurrency, rate }: NonNullable<ToolState["perKey"]>): string =>
  [
    ...concurrency === undefined ? [] : [`${concurrency.toLocaleString("en")} at once`],
    ...rate === undefined ? [] : [rateOf(rate)]
  ].join(", ") || "in turns"

const toolNodes = ({ all, pools, settings, tool }: ToolQueue, at: number): ReadonlyArray<Node> => {
  const id = toolNodeId(tool)
  const isPaused = settings?.pausedAt !== undefined
  const names = [...pools.keys()].sort()
  return [
    {
      id,
      parent: groups.queue,
      kind: "queue",
      label: tool,
      state: isPaused ? "paused" : stateOf(all),
      summary: summaryOf(all),
      ...sinceOf(all, at),
      actions: [
        isPaused ? resume : pause,
        ...all.ready + all.waiting + all.running === 0 ? [] : [cancelAll, wakeAll],
        rerunAll
      ],
      details: {
        ...countDetails(all),
        ...names.length === 0 ? {} : { pool: names.join(", ") },
        ...settings?.concurrency === undefined ? {} : { concurrency: settings.concurrency },
        ...settings?.rate === undefined ? {} : { rate: rateOf(settings.rate) },
        ...settings?.perKey === undefined ? {} : { "each key": limitsOf(settings.perKey) },
        ...settings?.pausedAt === undefined ? {} : { "paused since": new Date(settings.pausedAt).toISOString() }
      }
    },
    // The numbers of one pool are those of the tool.
    ...(names.length < 2 ? [] : names).map((pool): Node => {
      const counts = pools.get(pool)!
      return {
        id: `${id}/${JSON.stringify(pool)}`,
        parent: id,
        kind: "queue",
        label: `pool ${pool}`,
        state: stateOf(counts),
        summary: summaryOf(counts),
        ...sinceOf(counts, at),
        details: countDetails(counts)
      }
    })
  ]
}

/** The group of the queue: at most `limit` tools. `at`: when the numbers were read. */
export const queueNodes = (
  statistics: Statistics,
  tools: ReadonlyArray<ToolState>,
  at: number,
  limit: number
): ReadonlyArray<Node> => {
  const all = toolQueues(statistics, tools)
  const total = noCounts()
  for (const entry of statistics.queue) add(total, entry)
  return [
    {
      id: groups.queue,
      kind: "group",
      label: "Queue",
      state: stateOf(total),
      summary: summaryOf(total),
      ...sinceOf(total, at),
      ...all.length > limit ? { more: { total: all.length } } : {}
    },
    ...all.slice(0, limit).flatMap((queue) => toolNodes(queue, at))
  ]
}

/** The group of the workers: at most `limit` of them, and nothing if there are none. */
export const workerNodes = (workers: ReadonlyArray<WorkerState>, limit: number): ReadonlyArray<Node> => {
  if (workers.length === 0) return []
  const lost = workers.filter(({ isLost }) => isLost).length
  const running = workers.reduce((sum, worker) => sum + worker.running, 0)
  return [
    {
      id: groups.workers,
      kind: "group",
      label: "Workers",
      state: running > 0 ? "running" : "idle",
      ...lost === 0 ? {} : { summary: `${lost} lost` },
      ...workers.length > limit ? { more: { total: workers.length } } : {}
    },
    ...workers.slice(0, limit).map(
      ({ application, host, id, isLost, leaseEndsAt, pid, pools, running, startedAt }): Node => {
        const names = pools.join(", ")
        return {
          id: `worker/${id}`,
          parent: groups.workers,
          kind: "worker",
          label: `${host} ${id.slice(0, 8)}`,
          state: isLost ? "lost" : running > 0 ? "running" : "idle",
          ...isLost
            ? { waitsFor: "another worker to take over its tasks" }
            : {
              summary: running === 0 ? `takes tasks of ${names}` : `${running.toLocaleString("en")} running in ${names}`
            },
          since: startedAt,
          details: {
            id,
            host,
            ...pid === undefined ? {} : { pid },
            ...application === undefined ? {} : { application },
            pools: names,
            running,
            [isLost ? "lease ended" : "lease ends"]: new Date(leaseEndsAt).toISOString()
          }
        }
      }
    )
  ]
}
