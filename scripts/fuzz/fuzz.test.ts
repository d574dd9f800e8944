/** The short form of `npm run fuzz`: ten seconds for each target, and always the same messages. */
import { expect, it } from "vitest"
import { fuzz, targets } from "./fuzz.ts"

for (const { name } of targets) {
  it(`${name} · reads or refuses hostile messages without a defect`, { timeout: 180_000 }, async () => {
    const lines: Array<string> = []
    const faults = await fuzz({ seed: 1, only: name, milliseconds: 10_000, print: (line) => lines.push(line) })
    // The lines describe the faults.
    expect(faults === 0 ? [] : lines).toEqual([])
  })
}
