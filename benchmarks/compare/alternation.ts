/**
 * Measures two versions of a program in short alternating slices. Other work on the machine slows both alike, so the
 * median of the paired ratios settles within one or two percent where separate runs of a second differ by thirty.
 *
 * A process can be faster or slower by 15 % for its whole life, and the one that starts second more often is. So both
 * versions start several times, in turn as the first, and the ratio is the mean of these starts.
 */
import { meanConfidence, quantile } from "../lib/statistics.ts"

/** One version under a workload. */
export interface Version {
  /** Runs the workload for some milliseconds, and returns the operations per millisecond. */
  readonly slice: (millis: number) => Promise<number>
  readonly close: () => Promise<unknown>
}

/** The starts of both versions, and the slices of each start. Times are in milliseconds. */
export interface Plan {
  readonly starts: number
  readonly pairs: number
  readonly warmUp: number
  readonly slice: number
}

/** The ratio of the rates, new to old: the mean of all starts, and the interval that holds it with 95 %. */
export interface Ratio {
  readonly mean: number
  readonly low: number
  readonly high: number
  /** The medians of the two rates, in operations per second. */
  readonly before: number
  readonly now: number
}

interface Rates {
  readonly before: number
  readonly now: number
}

/** Measures one pair of processes. */
const alternate = async (before: Version, now: Version, { pairs, slice, warmUp }: Plan): Promise<Array<Rates>> => {
  for (let warm = 0; warm < warmUp; warm += slice) {
    await before.slice(slice)
    await now.slice(slice)
  }
  const rates: Array<Rates> = []
  for (let pair = 0; pair < pairs; pair++) {
    const first = pair % 2 === 0 ? before : now
    const one = await first.slice(slice)
    const other = await (first === before ? now : before).slice(slice)
    rates.push(first === before ? { before: one, now: other } : { before: other, now: one })
  }
  return rates
}

/** Starts both versions several times, and alternates them. */
export const compare = async (
  open: { readonly before: () => Promise<Version>; readonly now: () => Promise<Version> },
  plan: Plan
): Promise<Ratio> => {
  const starts: Array<ReadonlyArray<Rates>> = []
  for (let start = 0; start < plan.starts; start++) {
    const opened: Record<string, Version> = {}
    for (const name of start % 2 === 0 ? ["before", "now"] as const : ["now", "before"] as const) {
      opened[name] = await open[name]()
    }
    starts.push(await alternate(opened["before"]!, opened["now"]!, plan))
    for (const version of Object.values(opened)) await version.close()
  }
  const { max, mean, min } = meanConfidence(
    starts.map((rates) => quantile(rates.map((rate) => rate.now / rate.before), 0.5))
  )
  const median = (of: (rates: Rates) => number): number => quantile(starts.flat().map(of), 0.5) * 1_000
  return { mean, low: min, high: max, before: median(({ before }) => before), now: median(({ now }) => now) }
}
