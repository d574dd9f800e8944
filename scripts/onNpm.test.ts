import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { installing, withNotice } from "./onNpm.ts"

const read = (page: string): string => readFileSync(join(import.meta.dirname, "..", page), "utf8")

describe.each(installing)("%s", (page, link) => {
  it("says that the packages are not on npm as long as it is true: run `npm run blocks`", () => {
    expect(read(page)).toBe(withNotice(read(page), link))
  })

  it("says it above the first command, once, and not at all when the packages are on npm", () => {
    const text = withNotice(read(page), link, false)
    expect(text.match(/Not on npm yet/g)).toEqual(["Not on npm yet"])
    expect(text.indexOf("Not on npm yet")).toBeLessThan(text.search(/^(?:npm create skein|npm install|npx )/m))
    expect(withNotice(text, link, true)).not.toContain("Not on npm yet")
    expect(withNotice(withNotice(text, link, true), link, false)).toBe(text)
  })
})
