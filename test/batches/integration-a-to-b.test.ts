import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/[ab]*.test.ts');
