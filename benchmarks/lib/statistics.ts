/** The spread of a repeated measurement. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The median and the extremes of at least one sample. */
export const spread = (samples: ReadonlyArray<number>): Spread => {
  if (samples.length === 0) throw new Error("no samples")
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { median, min: sorted[0]!, max: sorted[sorted.length - 1]! }
}

/**
 * The median of at least one sample, and as its extremes the interval that holds the median with 95 %. It is the spread
 * of the medians of random selections from the samples (bootstrap).
 */
export const confidence = (samples: ReadonlyArray<number>): Spread => {
  const medians = Array.from(
    { length: 500 },
    () => quantile(samples.map(() => samples[Math.floor(Math.random() * samples.length)]!), 0.5)
  )
  return { median: quantile(samples, 0.5), min: quantile(medians, 0.025), max: quantile(medians, 0.975) }
}

/** The value that a share of at least one sample does not exceed: 0.95 for the 95th percentile. */
export const quantile = (samples: ReadonlyArray<number>, share: number): number => {
  if (samples.length === 0) throw new Error("no samples")
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/** Divides each sample by the base of the same round, so that a drift of the machine cancels out. */
export const ratios = (samples: ReadonlyArray<number>, base: ReadonlyArray<number>): Spread =>
  spread(samples.map((sample, index) => sample / base[index]!))
