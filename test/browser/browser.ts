/** Starts a browser for the tests of the console, and opens the console of a gateway in it. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import {
  type Browser,
  type BrowserContextOptions,
  type ConsoleMessage,
  chromium,
  type Page,
} from 'playwright-core';
import { chromiumIsRequired, chromiumProgram, howToGetChromium } from '../kit/find-chromium.ts';
import { adminToken, type GatewayUnderTest } from '../kit/gateway.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

/** Why the tests of the console are skipped, or false. */
export const skipWithoutChromium: string | false =
  chromiumProgram() || chromiumIsRequired() ? false : `there is no browser; get one: ${howToGetChromium}`;

export type AdminAddress = Pick<GatewayUnderTest, 'adminUrl'>;

/** Opens pages in one browser. Every script error and every message on the browser's console fails the test. */
export interface Pages {
  /** Opens the console without signing in. */
  open(t: TestContext, address: AdminAddress, options?: BrowserContextOptions): Promise<Page>;
  /** Opens the console, signs in, and waits until the first event is rendered. */
  signIn(
    t: TestContext,
    address: AdminAddress,
    options?: BrowserContextOptions,
    token?: string,
  ): Promise<Page>;
}

/** The callers of `usePages` whose tests have not ended. */
let users = 0;
let browser: Promise<Browser> | undefined;
/** A page that no test uses now. A new page, in a new context, takes 1.2 s of CPU. */
let freePage: Page | undefined;

/** The options that a page can change; another one needs a context of its own. */
const changeable: ReadonlySet<string> = new Set(['colorScheme', 'reducedMotion', 'viewport']);

/** Starts one browser for the tests of all callers in this process, at the first use. */
export function usePages(): Pages {
  users += 1;
  scopeOfAllTests().after(async () => {
    users -= 1;
    if (users > 0) return;
    const last = browser;
    browser = undefined;
    freePage = undefined;
    await (await last)?.close();
  });

  async function open(t: TestContext, { adminUrl }: AdminAddress, options: BrowserContextOptions = {}) {
    browser ??= launchChromium();
    const isReusable = Object.keys(options).every((name) => changeable.has(name));
    const page = (isReusable ? takeFreePage() : undefined) ?? (await newPage(await browser, options));
    if (isReusable) await setUp(page, options);
    const messages: string[] = [];
    const onError = (error: Error) => void messages.push(String(error.stack));
    const onMessage = (message: ConsoleMessage) => {
      // The browser logs 4xx responses and lost connections by itself; tests cause both on purpose.
      if (!message.text().startsWith('Failed to load resource')) messages.push(message.text());
    };
    page.on('pageerror', onError).on('console', onMessage);
    t.after(async () => {
      if (isReusable) await release(page);
      else await page.context().close();
      page.off('pageerror', onError).off('console', onMessage);
      assert.deepEqual(messages, []);
    });
    await page.goto(adminUrl);
    return page;
  }

  return {
    open,
    async signIn(t, address, options, token = adminToken) {
      const page = await open(t, address, options);
      await page.getByLabel('Operator token').fill(token);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Environments' }).waitFor();
      return page;
    },
  };
}

function takeFreePage(): Page | undefined {
  const page = freePage?.isClosed() ? undefined : freePage;
  freePage = undefined;
  return page;
}

async function newPage(from: Browser, options: BrowserContextOptions): Promise<Page> {
  const page = await (await from.newContext({ viewport: defaultViewport, ...options })).newPage();
  page.setDefaultTimeout(10_000);
  return page;
}

const defaultViewport = { width: 1280, height: 900 };

async function setUp(page: Page, { viewport, colorScheme, reducedMotion }: BrowserContextOptions) {
  await page.setViewportSize(viewport ?? defaultViewport);
  await page.emulateMedia({
    colorScheme: colorScheme ?? 'light',
    reducedMotion: reducedMotion ?? 'no-preference',
  });
  await page.mouse.move(0, 0);
}

/** Removes what a test has left behind, and keeps the page for the next one. */
async function release(page: Page): Promise<void> {
  if (page.isClosed()) return;
  const context = page.context();
  for (const other of context.pages()) if (other !== page) await other.close();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  // An error page of the browser has no storage.
  await page
    .evaluate(() => {
      sessionStorage.clear();
      localStorage.clear();
    })
    .catch(() => {});
  await page.goto('about:blank');
  await context.clearCookies();
  freePage = page;
}

async function launchChromium(): Promise<Browser> {
  const executablePath = chromiumProgram();
  if (!executablePath) throw new Error(howToGetChromium);
  // A container has neither the namespaces of the sandbox nor much shared memory.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
