import { describe, expect, it } from "@effect/vitest"
import * as Sealer from "@skein/runtime/Sealer"

const secret = (first: number): Uint8Array => new Uint8Array(32).map((_, i) => (first + i) & 0xff)

describe("Sealer", () => {
  it("opens the texts that it has sealed", async () => {
    const sealer = await Sealer.make([secret(1)], "tests")
    for (const text of ["", "text", "é ☃ 😀", "\uFEFFmark", "x".repeat(100_000)]) {
      expect(await sealer.open(await sealer.seal(text, "use"), "use")).toBe(text)
    }
  })

  it("seals the same text differently each time", async () => {
    const sealer = await Sealer.make([secret(1)], "tests")
    expect(await sealer.seal("text", "use")).not.toBe(await sealer.seal("text", "use"))
  })

  it("opens no text of another use, purpose or secret", async () => {
    const sealed = await (await Sealer.make([secret(1)], "tests")).seal("text", "use")
    expect(await (await Sealer.make([secret(1)], "tests")).open(sealed, "other use")).toBeUndefined()
    expect(await (await Sealer.make([secret(1)], "other")).open(sealed, "use")).toBeUndefined()
    expect(await (await Sealer.make([secret(2)], "tests")).open(sealed, "use")).toBeUndefined()
  })

  it("opens no text that was changed, cut or invented", async () => {
    const sealer = await Sealer.make([secret(1)], "tests")
    const sealed = await sealer.seal("text", "use")
    const [hint, data] = sealed.split(".") as [string, string]
    const last = data.at(-2) === "A" ? "B" : "A"
    const changed = [
      `${hint}.${data.slice(0, -2)}${last}${data.at(-1)!}`,
      sealed.slice(0, -4),
      `${hint}.`,
      `${hint}.!`,
      hint,
      data,
      "",
      "."
    ]
    for (const text of changed) expect(await sealer.open(text, "use")).toBeUndefined()
  })

  it("opens the texts of earlier secrets, and reports that they are not current", async () => {
    const before = await Sealer.make([secret(1)], "tests")
    const after = await Sealer.make([secret(2), secret(1)], "tests")
    const sealed = await before.seal("text", "use")
    expect([before.isCurrent(sealed), after.isCurrent(sealed)]).toEqual([true, false])
    expect(await after.open(sealed, "use")).toBe("text")
    expect(after.isCurrent(await after.seal("text", "use"))).toBe(true)
  })

  // A text that a store has kept must be opened by every later version.
  it("opens a stored text of an earlier version", async () => {
    const stored = "TOZqkw._MKpCI9Se-PQp1e0Stq_0-E2JVoSJ91lBJLyhQCB6zEixZxfGDwEnaBj6nE"
    expect(await (await Sealer.make([secret(0)], "tasks")).open(stored, "task 1")).toBe("a stored text é")
  })
})
