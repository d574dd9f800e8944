/** `View` as a global, for pages without a bundler: `AppHtml.document({ withView: true })`. */
import { make } from "../src/View.ts"
import { ViewError } from "../src/ViewError.ts"

Object.assign(globalThis, { SkeinView: { make, ViewError } })
