/** The members that the comparison of `skein` with `@skein/*` finds in the sources. */
import { expect, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeMemberNames, resolveRelative } from "./memberNames.ts"

it("finds the members of classes, interfaces and aliases, with those that they extend", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-members-"))
  try {
    const path = join(folder, "index.ts")
    writeFileSync(
      join(folder, "base.ts"),
      "export interface Base { readonly id: string; close(): void; lost: number }\n"
    )
    writeFileSync(
      path,
      `import type { Base as Root } from "./base.ts"
import * as Bases from "./base.ts"
export interface Open extends Omit<Root, "lost"> { readonly open: () => void }
export class Door implements Root {
  static made = 0
  #key = 1
  private hidden = 2
  id = "a"
  get size() { return this.#key }
  close() {}
}
export class Service extends Context.Service<Service, { readonly get: () => void }>()("Service") {}
export type Both = Open & { readonly more: string }
export type Of = Pick<Bases.Base, "id">
export const value: { readonly make: () => Door } = { make: () => new Door() }
export class Gate extends Door { swing() {} }
export type { Base } from "./base.ts"
`
    )
    const members = makeMemberNames(resolveRelative)
    const of = (name: string) => members(path, name) && [...members(path, name)!].toSorted()
    expect(of("Open")).toEqual(["close", "id", "open"])
    expect(of("Door")).toEqual(["close", "id", "size"])
    expect(of("Gate")).toEqual(["close", "id", "size", "swing"])
    expect(of("Service")).toEqual(["get"])
    expect(of("Both")).toEqual(["close", "id", "more", "open"])
    expect(of("Of")).toEqual(["id"])
    expect(of("value")).toEqual(["make"])
    expect(of("Base")).toEqual(["close", "id", "lost"])
    expect(of("Other")).toBeUndefined()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
