import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/[e-l]*.test.ts');
