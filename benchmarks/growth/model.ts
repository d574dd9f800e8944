/**
 * The costs of a fleet by the number of its nodes: computed from the costs of single operations, and from how often
 * `@skein/fleet` does them.
 */

/** The costs of single operations. Times are in microseconds of processor time. */
export interface Units {
  /**
   * PostgreSQL: one session is created, found, changed, written because it was used, only looked up because it was used, and
   * deleted because it has expired.
   */
  readonly create: number
  readonly find: number
  readonly change: number
  readonly touch: number
  readonly skip: number
  readonly expire: number
  /** PostgreSQL: one connection is woken by a notification that it receives, and by one of another channel. */
  readonly wake: number
  readonly pass: number
  /** PostgreSQL: the renewal of a lease, and its part for each node of the fleet. */
  readonly renew: number
  readonly renewPerNode: number
  /** A node: one call, and one message that it receives. */
  readonly call: number
  readonly receive: number
  /** Bytes of a session: in PostgreSQL, at the node that has opened it, and at another one. */
  readonly row: number
  readonly own: number
  readonly copy: number
  /** Bytes that PostgreSQL writes to its log for a session: when it is created, found, changed and used. */
  readonly log: { readonly create: number; readonly find: number; readonly change: number; readonly touch: number }
  /** Bytes of a connection in PostgreSQL. */
  readonly connection: number
}

/** How the sessions are used. Times are in seconds. */
export interface Load {
  readonly sessions: number
  /**
   * A session has this number of calls, in this time, and then waits for this time until it expires. It is changed as often
   * as this: when it is initialized, which another node is notified of if that has opened it, and when its client opens
   * a stream, which both are notified of.
   */
  readonly calls: number
  readonly changes: number
  readonly active: number
  readonly idle: number
  /** How the load balancer chooses a node: by a hash of the session, or in turn. */
  readonly balancer: "hash" | "in turn"
}

/** The machines: cores of PostgreSQL, bytes of a node for sessions, and changes of sessions that are committed in a second. */
export interface Machines {
  readonly cores: number
  readonly memory: number
  readonly commits: number
}

export interface Costs {
  /** Connections to PostgreSQL: those that listen, and at most. */
  readonly listening: number
  readonly connections: number
  /** In a second: statements for leases and removals, look-ups of sessions, wake-ups of connections, and rows that are used. */
  readonly leases: number
  readonly finds: number
  readonly wakes: number
  readonly touches: number
  /** Cores of PostgreSQL: in total, for leases, and for notifications. */
  readonly cores: number
  readonly leaseCores: number
  readonly wakeCores: number
  /** Cores and bytes of one node. */
  readonly nodeCores: number
  readonly nodeBytes: number
  /** Bytes of the log in a second. */
  readonly log: number
}

// As in `packages/fleet/src/internal/node/node.ts` and `packages/server/src/internal/http`: a lease of 5 seconds is renewed
// three times in it, rows are removed every 5 seconds by three statements, sessions in use are written every second, and the
// digest of the catalog is sent once a minute. A session is written once in a tenth of its idle time.
const renewals = 3 / 5
const removals = 3 / 5
const digests = 1 / 60
const connectionsOfNode = 11
// A copy of a session is removed when it was idle for this many seconds.
const copyTime = 60

/** The costs in a second of a number of nodes. */
export const costsOf = (units: Units, load: Load, nodes: number): Costs => {
  const opened = load.sessions / (load.active + load.idle)
  const calls = opened * load.calls
  const elsewhere = 1 - 1 / nodes
  // In turn, a call finds its session if it was opened at the node, or if one of the last calls was there.
  const recent = Math.floor(copyTime / (load.active / load.calls))
  const finds = load.balancer === "hash" ? opened * elsewhere : calls * elsewhere ** (recent + 1)
  const touches = opened * (1 + Math.floor(load.active / (load.idle / 10)))
  const initialized = opened * elsewhere
  const streams = opened * (load.changes - 1)
  const received = initialized + streams * (1 + elsewhere) + nodes * digests * nodes
  const wakes = (initialized + streams + nodes * digests) * nodes
  const leaseMicros = nodes * (renewals * (units.renew + units.renewPerNode * nodes) + removals * units.expire)
  const wakeMicros = received * units.wake + (wakes - received) * units.pass
  const sessionMicros = opened * (units.create + load.changes * units.change + units.expire) + finds * units.find +
    touches * units.touch + (calls - touches) * units.skip
  const copies = load.balancer === "hash" ? load.active + copyTime : recent * load.active
  return {
    listening: nodes,
    connections: nodes * connectionsOfNode,
    leases: nodes * (renewals + removals),
    finds,
    wakes,
    touches,
    cores: (leaseMicros + wakeMicros + sessionMicros) / 1e6,
    leaseCores: leaseMicros / 1e6,
    wakeCores: wakeMicros / 1e6,
    nodeCores: (calls * units.call + received * units.receive) / nodes / 1e6,
    nodeBytes: (load.sessions * units.own + opened * copies * units.copy) / nodes,
    log: opened * (units.log.create + load.changes * units.log.change) + finds * units.log.find +
      touches * units.log.touch
  }
}

/** The most sessions that a resource allows, and the name of the resource. */
export interface Capacity {
  readonly resource: string
  readonly sessions: number
}

/** The most sessions that a number of nodes can have by each resource, the bottleneck first. */
export const capacitiesOf = (
  units: Units,
  load: Load,
  { commits, cores, memory }: Machines,
  nodes: number
): ReadonlyArray<Capacity> => {
  const none = costsOf(units, { ...load, sessions: 0 }, nodes)
  const one = costsOf(units, { ...load, sessions: 1 }, nodes)
  /** The sessions until a limit is reached, of a cost that grows with their number. */
  const until = (limit: number, of: (costs: Costs) => number): number =>
    Math.max(0, (limit - of(none)) / (of(one) - of(none)))
  const all: ReadonlyArray<Capacity> = [
    { resource: "processor of PostgreSQL", sessions: until(cores, (costs) => costs.cores) },
    { resource: "commits that notify", sessions: commits / (load.changes - 1 / nodes) * (load.active + load.idle) },
    { resource: "processor of a node", sessions: until(1, (costs) => costs.nodeCores) },
    { resource: "memory of a node", sessions: until(memory, (costs) => costs.nodeBytes) }
  ]
  return all.toSorted((a, b) => a.sessions - b.sessions)
}
