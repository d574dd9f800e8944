/** The metrics of several workers as one text. */
import { describe, expect, it } from "@effect/vitest"
import { merge, MetricTexts } from "../../src/internal/http/workers/metricTexts.ts"

const lines = (...text: ReadonlyArray<string>): string => text.map((line) => `${line}\n`).join("")

describe("merge", () => {
  it("adds counters by their labels", () => {
    const text = (one: number, other: string) =>
      lines("# HELP calls Calls of tools.", "# TYPE calls counter", `calls{tool="a b"} ${one}`, other)
    expect(
      merge([{ worker: 1, text: text(1, "calls{tool=\"c\"} 2") }, { worker: 2, text: text(40, "calls 7") }])
    ).toBe(lines(
      "# HELP calls Calls of tools.",
      "# TYPE calls counter",
      "calls{tool=\"a b\"} 41",
      "calls{tool=\"c\"} 2",
      "calls 7"
    ))
  })

  it("adds the buckets, sums and counts of histograms", () => {
    const text = lines(
      "# TYPE time histogram",
      "time_bucket{le=\"0.5\"} 1",
      "time_bucket{le=\"+Inf\"} 3",
      "time_sum 1.25",
      "time_count 3"
    )
    expect(merge([{ worker: 1, text }, { worker: 2, text }])).toBe(
      lines(
        "# TYPE time histogram",
        "time_bucket{le=\"0.5\"} 2",
        "time_bucket{le=\"+Inf\"} 6",
        "time_sum 2.5",
        "time_count 6"
      )
    )
  })

  it("labels gauges and summaries with the worker", () => {
    const text = lines(
      "# TYPE open gauge",
      "open 3",
      "open{worker=\"own\"} +Inf",
      "# TYPE time summary",
      "time{quantile=\"0.5\"} 2"
    )
    expect(merge([{ worker: 1, text }, { worker: 12, text }])).toBe(lines(
      "# TYPE open gauge",
      "open{worker=\"1\"} 3",
      "open{worker=\"own\",server_worker=\"1\"} +Inf",
      "open{worker=\"12\"} 3",
      "open{worker=\"own\",server_worker=\"12\"} +Inf",
      "# TYPE time summary",
      "time{quantile=\"0.5\",worker=\"1\"} 2",
      "time{quantile=\"0.5\",worker=\"12\"} 2"
    ))
  })

  it("leaves out the gauges of a worker that has exited, and keeps its counts", () => {
    const text = lines("# TYPE open gauge", "open 3", "# TYPE calls counter", "calls 2")
    expect(merge([{ text }])).toBe(lines("# TYPE calls counter", "calls 2"))
    expect(merge([{ text }, { worker: 1, text }])).toBe(
      lines("# TYPE calls counter", "calls 4", "# TYPE open gauge", "open{worker=\"1\"} 3")
    )
  })
})

describe("MetricTexts", () => {
  it("answers a scrape when all workers have answered or exited, and adds the counts of those", () => {
    const asked: Array<readonly [number, number]> = []
    const texts = new MetricTexts((worker, _, number) => void asked.push([worker, number]))
    const counter = (value: number) => lines("# TYPE calls counter", `calls ${value}`)
    const scrapes: Array<string> = []
    const scrape = (...workers: ReadonlyArray<number>) =>
      texts.scrape("metrics", workers, (all) => void scrapes.push(merge(all)))
    scrape(1, 2)
    texts.answered(asked[0]![1], 1, counter(3))
    expect(scrapes).toEqual([])
    texts.answered(asked[1]![1], 2, counter(4))
    expect(scrapes).toEqual([counter(7)])
    // Worker 1 stops with one more call, and worker 2 is killed during the scrape.
    texts.set("metrics", 1, counter(4))
    texts.exited(1)
    scrape(2)
    texts.exited(2)
    expect(scrapes[1]).toBe(counter(8))
  })
})
