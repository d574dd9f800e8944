import { expect, it } from "vitest"
import { fuzz, targets } from "./fuzz.ts"

for (const { name } of targets) {
  it(`${name} · reads or refuses hostile messages without a defect`, async () => {
    const lines: Array<string> = []
    const faults = await fuzz({
      seed: 1,
      only: name,
      runs: 300,
      milliseconds: 60_000,
      print: (line) => lines.push(line)
    })
    // The lines describe the faults.
    expect(faults === 0 ? [] : lines).toEqual([])
  })
}
