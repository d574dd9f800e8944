/**
 * The metrics of several workers as one text in the format of Prometheus.
 *
 * Counters and histograms are added. A gauge or a summary has no meaningful sum: each worker has its own, with the label
 * `worker`. The counts of a worker that has exited stay, as far as they are known, because a counter that decreases
 * looks like a restart of the server.
 */

// How long a worker may take to answer a scrape, in milliseconds.
const scrapeTimeout = 1_000

/** The metrics of one worker. */
export interface MetricText {
  /** `undefined`: it has exited or does not answer. Its gauges and summaries are left out. */
  readonly worker?: number | undefined
  readonly text: string
}

/** The samples of one metric. */
interface Family {
  readonly head: Array<string>
  /** The values by the name and the labels of the sample. */
  readonly samples: Map<string, number>
}

const parse = (value: string): number => value === "+Inf" ? Infinity : value === "-Inf" ? -Infinity : Number(value)

const format = (value: number): string => value === Infinity ? "+Inf" : value === -Infinity ? "-Inf" : String(value)

/** Adds a label with the number of a worker to the name and the labels of a sample. */
const withWorker = (sample: string, worker: number): string => {
  const label = `${/[{,]worker="/.test(sample) ? "server_worker" : "worker"}="${worker}"`
  return sample.endsWith("}") ? `${sample.slice(0, -1)},${label}}` : `${sample}{${label}}`
}

/** Adds the metrics of workers, each in the text format of Prometheus. */
export const merge = (texts: ReadonlyArray<MetricText>): string => {
  const families = new Map<string, Family>()
  for (const { text, worker } of texts) {
    let help: string | undefined
    let family: Family | undefined
    let isAdded = false
    for (const line of text.split("\n")) {
      if (line.startsWith("# HELP ")) help = line
      else if (line.startsWith("# TYPE ")) {
        const [, , name = "", type] = line.split(" ")
        isAdded = type === "counter" || type === "histogram"
        family = families.get(name)
        if (family === undefined && (isAdded || worker !== undefined)) {
          families.set(name, family = { head: help === undefined ? [line] : [help, line], samples: new Map() })
        }
        help = undefined
      } else if (family !== undefined && line !== "" && (isAdded || worker !== undefined)) {
        const space = line.lastIndexOf(" ")
        const sample = line.slice(0, space)
        const key = isAdded || worker === undefined ? sample : withWorker(sample, worker)
        family.samples.set(key, (family.samples.get(key) ?? 0) + parse(line.slice(space + 1)))
      }
    }
  }
  return Array.from(
    families.values(),
    ({ head, samples }) =>
      [...head, ...Array.from(samples, ([sample, value]) => `${sample} ${format(value)}`)].map((line) => `${line}\n`)
        .join("")
  ).join("")
}

/** A scrape that waits for workers. */
interface Scrape {
  readonly topic: string
  readonly waiting: Set<number>
  readonly done: () => void
}

/** Collects the metrics of all workers, in the primary process. A topic is that of one route. */
export class MetricTexts {
  /** The last text of each worker, by topic. */
  readonly #texts = new Map<string, Map<number, string>>()
  /** The counts of the workers that have exited, by topic. */
  readonly #exited = new Map<string, string>()
  readonly #scrapes = new Map<number, Scrape>()
  readonly #ask: (worker: number, topic: string, number: number) => void
  #last = 0

  constructor(ask: (worker: number, topic: string, number: number) => void) {
    this.#ask = ask
  }

  /** Stores the metrics of a worker, such as the last ones before its exit. */
  set(topic: string, worker: number, text: string): void {
    const texts = this.#texts.get(topic) ?? new Map<number, string>()
    this.#texts.set(topic, texts.set(worker, text))
  }

  /** Asks the workers for their metrics. `done` receives the answers after 1 second at most. */
  scrape(topic: string, workers: ReadonlyArray<number>, done: (texts: ReadonlyArray<MetricText>) => void): void {
    const number = ++this.#last
    const waiting = new Set(workers)
    const timer = setTimeout(() => finish(), scrapeTimeout)
    const finish = (): void => {
      clearTimeout(timer)
      this.#scrapes.delete(number)
      const texts = Array.from(
        this.#texts.get(topic) ?? [],
        ([worker, text]): MetricText => waiting.has(worker) ? { text } : { worker, text }
      )
      done([{ text: this.#exited.get(topic) ?? "" }, ...texts])
    }
    if (waiting.size === 0) return finish()
    this.#scrapes.set(number, { topic, waiting, done: finish })
    for (const worker of workers) this.#ask(worker, topic, number)
  }

  /** A worker has answered a scrape. */
  answered(number: number, worker: number, text: unknown): void {
    const scrape = this.#scrapes.get(number)
    if (scrape === undefined) return
    if (typeof text === "string") this.set(scrape.topic, worker, text)
    this.#settle(scrape, worker)
  }

  /** A worker has exited: its counts stay. */
  exited(worker: number): void {
    for (const [topic, texts] of this.#texts) {
      const text = texts.get(worker)
      if (text === undefined) continue
      texts.delete(worker)
      this.#exited.set(topic, merge([{ text: this.#exited.get(topic) ?? "" }, { text }]))
    }
    for (const scrape of this.#scrapes.values()) if (scrape.waiting.has(worker)) this.#settle(scrape, worker)
  }

  #settle({ done, waiting }: Scrape, worker: number): void {
    waiting.delete(worker)
    if (waiting.size === 0) done()
  }
}
