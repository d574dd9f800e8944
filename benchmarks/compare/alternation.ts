/**
 * Measures two versions of a program in short alternating slices. Other work on the machine slows both alike, so the
 * median of the paired ratios settles within one or two percent where separate runs of a second differ by thirty.
 */
import { confidence, quantile } from "../lib/statistics.ts"

/** One version under a workload. */
export interface Version {
  /** Runs the workload for some milliseconds, and returns the operations per millisecond. */
  readonly slice: (millis: number) => Promise<number>
  readonly close: () => Promise<unknown>
}

/** The slices of one measurement. Times are in milliseconds. */
export interface Plan {
  readonly pairs: number
  readonly warmUp: number
  readonly slice: number
}

/** The ratio of the rates, new to old: the median of all pairs, and the interval that holds it with 95 %. */
export interface Ratio {
  readonly median: number
  readonly low: number
  readonly high: number
  /** The medians of the two rates, in operations per second. */
  readonly before: number
  readonly now: number
}

const median = (samples: ReadonlyArray<number>): number => quantile(samples, 0.5)

/** Alternates two versions, and which of them goes first. */
export const alternate = async (before: Version, now: Version, plan: Plan): Promise<Ratio> => {
  for (let warm = 0; warm < plan.warmUp; warm += plan.slice) {
    await before.slice(plan.slice)
    await now.slice(plan.slice)
  }
  const rates: Array<{ readonly before: number; readonly now: number }> = []
  for (let pair = 0; pair < plan.pairs; pair++) {
    const first = pair % 2 === 0 ? before : now
    const one = await first.slice(plan.slice)
    const other = await (first === before ? now : before).slice(plan.slice)
    rates.push(first === before ? { before: one, now: other } : { before: other, now: one })
  }
  const ratio = confidence(rates.map((rate) => rate.now / rate.before))
  return {
    median: ratio.median,
    low: ratio.min,
    high: ratio.max,
    before: median(rates.map((rate) => rate.before)) * 1_000,
    now: median(rates.map((rate) => rate.now)) * 1_000
  }
}
