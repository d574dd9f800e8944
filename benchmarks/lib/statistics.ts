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

/** The interval that holds a figure of the samples with 95 %: the spread of the figure in random selections (bootstrap). */
const interval = (samples: ReadonlyArray<number>, figure: (samples: ReadonlyArray<number>) => number) => {
  const figures = Array.from(
    { length: 500 },
    () => figure(samples.map(() => samples[Math.floor(Math.random() * samples.length)]!))
  )
  return { min: quantile(figures, 0.025), max: quantile(figures, 0.975) }
}

/** The median of at least one sample, and as its extremes the interval that holds the median with 95 %. */
export const confidence = (samples: ReadonlyArray<number>): Spread => {
  const median = (samples: ReadonlyArray<number>): number => quantile(samples, 0.5)
  return { median: median(samples), ...interval(samples, median) }
}

/** The geometric mean of at least one ratio, and as its extremes the interval that holds the mean with 95 %. */
export const meanConfidence = (ratios: ReadonlyArray<number>): Omit<Spread, "median"> & { readonly mean: number } => {
  if (ratios.length === 0) throw new Error("no ratios")
  const mean = (ratios: ReadonlyArray<number>): number =>
    Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length)
  return { mean: mean(ratios), ...interval(ratios, mean) }
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

/** As `ratios`, and as the extremes of their median the interval that holds it with 95 %. */
export const ratioConfidence = (samples: ReadonlyArray<number>, base: ReadonlyArray<number>): Spread =>
  confidence(samples.map((sample, index) => sample / base[index]!))
